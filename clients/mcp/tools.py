"""The tools of the MCP server: their arguments, their results, and the descriptions that hosts show to a model.

Invariants: six tools at most unless the host asks for more, because every context pays for every word (P-24), in the
order in which a model needs them; an unknown argument is refused; a read-only server has no tool that writes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta

from ...protocol.event import LEARNINGS, QUOTES, StatementType
from ...protocol.recall import BUDGET_TOKENS, LIMIT, TaskOutcome
from ...protocol.record import TYPES
from ...protocol.reflection import ReflectedLearning

IDS_LIMIT = 20
REFLECTED_MOST = 12
"""Most statements of a reflection of an agent."""

Cwd = Annotated[
    str,
    Meta(
        description="Absolute path of the folder you work in, which selects the project's memory. "
        "By default the folder in which this server started."
    ),
]
Id = Annotated[str, Meta(min_length=4, max_length=64, description="A memory's id, or the beginning of it.")]
Ids = Annotated[list[Id], Meta(min_length=1, max_length=IDS_LIMIT, description="Ids of memories.")]
TypeName = Annotated[str, Meta(extra_json_schema={"enum": list(TYPES)})]
SomeIds = Annotated[list[Id], Meta(max_length=IDS_LIMIT)]


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the arguments of a tool."""


class RecallArguments(Arguments, frozen=True, kw_only=True):
    """Of memory_recall."""

    query: Annotated[str, Meta(min_length=1, max_length=2000, description="A question, or words to search for.")]
    cwd: Cwd = ""
    pools: Annotated[list[str], Meta(max_length=64, description="Pools by name, instead of those of cwd.")] = []
    limit: Annotated[int, Meta(ge=1, le=200, description="At most this many memories and turns.")] = LIMIT
    budget_tokens: Annotated[int, Meta(ge=1, description="At most about this many tokens.")] = BUDGET_TOKENS
    threshold: Annotated[float, Meta(ge=0, le=1, description="Only results with at least this score.")] = 0
    types: Annotated[list[TypeName], Meta(description="Only memories of these types, and no turns.")] = []
    as_of: Annotated[
        str,
        Meta(description="What was true at this time: RFC 3339 with an offset, such as 2026-03-01T00:00:00Z."),
    ] = ""
    believed_at: Annotated[str, Meta(description="What memd knew at this time.")] = ""
    agent: Annotated[str, Meta(description="Also search this agent's memory.")] = ""
    perspective: Annotated[str, Meta(description="Prefer memories that this perspective used.")] = ""
    by_chance: Annotated[bool, Meta(description="Draw memories at random, better ones more often.")] = False
    deep: Annotated[
        bool,
        Meta(
            description="Also return the turns around each memory, its changes, and linked and archived memories. "
            "Use it when the plain answer is not enough."
        ),
    ] = False


class Handover(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Name files, commits and numbers as this session has them. `closed`: open items of earlier sessions."""

    done: list[str] = []
    decided: list[str] = []
    open: list[str] = []
    closed: list[str] = []


class RememberArguments(Arguments, frozen=True, kw_only=True):
    """Of memory_remember."""

    text: Annotated[
        str,
        Meta(max_length=4000, description="One self-contained statement, with its reason where it has one."),
    ] = ""
    handover: Annotated[
        Handover | None,
        Meta(description="Instead of `text`: what the next session needs."),
    ] = None
    cwd: Cwd = ""
    pool: Annotated[
        str,
        Meta(
            max_length=200,
            description="Where to save it, if the user says so: `personal`, `project` (of cwd), or a pool's name.",
        ),
    ] = ""
    agent: Annotated[str, Meta(max_length=64, description="Save it in this agent's own memory.")] = ""


class ForgetArguments(Arguments, frozen=True, kw_only=True):
    """Of memory_forget."""

    ids: Ids
    reason: Annotated[str, Meta(max_length=200, description="The reason in a few words, for the user.")] = ""


class HistoryArguments(Arguments, frozen=True, kw_only=True):
    """Of memory_history."""

    id: Id


class ProfileArguments(Arguments, frozen=True, kw_only=True):
    """Of memory_profile."""

    cwd: Cwd = ""
    part: Annotated[
        Literal["profile", "state", "sessions"],
        Meta(description="`state`: what is open and decided; `sessions`: what the last ones did."),
    ] = "profile"
    agent: Annotated[str, Meta(max_length=64, description="Also show this agent's memory.")] = ""


class FeedbackArguments(Arguments, frozen=True, kw_only=True):
    """Of memory_feedback."""

    recall: Annotated[str, Meta(max_length=64, description="`recall` of the answer that you rate.")] = ""
    used: Annotated[SomeIds, Meta(description="Memories that your answer or your work is based on.")] = []
    helpful: Annotated[SomeIds, Meta(description="Memories that prevented an error or a question.")] = []
    wrong: Annotated[SomeIds, Meta(description="Memories that were wrong or misled you.")] = []
    learned: Annotated[
        dict[str, Annotated[str, Meta(max_length=500)]],
        Meta(description="What a memory taught you for the perspective, in one sentence, by its id."),
    ] = {}
    perspective: Annotated[str, Meta(max_length=40, description="By default the one of your recall.")] = ""
    outcome: Annotated[
        TaskOutcome, Meta(description="How the task ended for which you used them: tests tell, not hope.")
    ] = ""


class ReflectedStatement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`about`: whom the user speaks of, if you know."""

    type: StatementType
    quotes: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=2000)]],
        Meta(min_length=1, max_length=QUOTES, description="Verbatim words of this session, each at least three words."),
    ]
    about: Literal["", "user", "project"] = ""


class ReflectArguments(Arguments, frozen=True, kw_only=True):
    """Of memory_reflect."""

    title: Annotated[str, Meta(max_length=160, description="The session in one line, as a colleague would say.")] = ""
    statements: Annotated[list[ReflectedStatement], Meta(max_length=REFLECTED_MOST)] = []
    open: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=300)]],
        Meta(max_length=12, description="What is unfinished, one line each."),
    ] = []
    learnings: Annotated[
        list[ReflectedLearning], Meta(max_length=LEARNINGS, description="Only if memd told you your perspectives.")
    ] = []
    cwd: Cwd = ""
    agent: Annotated[str, Meta(max_length=64, description="The agent whose session it is.")] = ""
    document: Annotated[
        str, Meta(max_length=4000, description="Instead of this session: the document that memory_ingest named.")
    ] = ""


class IngestArguments(Arguments, frozen=True, kw_only=True):
    """Of memory_ingest."""

    path: Annotated[str, Meta(max_length=4000, description="Absolute path of a file.")] = ""
    text: Annotated[str, Meta(max_length=1_000_000, description="Instead of a path: the text itself.")] = ""
    title: Annotated[str, Meta(max_length=200, description="What the text is called.")] = ""
    choose: Annotated[str, Meta(max_length=400, description="Only these items, such as 1,4-9.")] = ""
    top: Annotated[int, Meta(ge=0, description="Only so many items, those that are worth most.")] = 0
    all: Annotated[bool, Meta(description="Everything.")] = False
    by_category: Annotated[bool, Meta(description="Everything, with a summary for each category.")] = False
    categories: Annotated[list[str], Meta(max_length=40, description="Only these categories.")] = []
    passage: Annotated[
        str, Meta(max_length=40, description="Instead: the passage to read, id and pointer, such as 7q3hjwch§12.")
    ] = ""
    cwd: Cwd = ""


class SkillsArguments(Arguments, frozen=True, kw_only=True):
    """Of memory_skills."""

    cwd: Cwd = ""
    name: Annotated[str, Meta(max_length=64, description="Only the skill of this name.")] = ""


class RankArguments(Arguments, frozen=True, kw_only=True):
    """Of memory_rank_agents."""

    task: Annotated[str, Meta(min_length=1, max_length=4000, description="The task, in a sentence or two.")]
    agents: Annotated[list[str], Meta(max_length=64, description="Only these agents.")] = []


class Memory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A memory: the statement, its quoted source and the speaker. `status` quarantined means unconfirmed; `type` "open
    question" means that it was undecided when it was said. `true_from` and `true_until`: of a retired one. With `deep`,
    `said_around` has the turns it comes from, and `changes` its earlier versions."""

    id: str
    text: str
    quote: str
    said_by: str
    said_at: str
    status: str
    pool: str
    source: str
    type: str = ""
    score: float = 0.0
    true_from: str = ""
    true_until: str = ""
    said_around: list[str] = []
    changes: list[str] = []


class SessionTurn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A verbatim passage of a session that is not distilled into a memory. `said_by` is `user` for the user's own words
    alone; `flags` tell how others came into the session (pasted, quoted), and what the scan found in them. `outdated`:
    passages of it that no longer hold, each with the id of the memory that replaced it."""

    text: str
    said_by: str
    said_at: str
    source: str
    score: float
    said_around: list[str] = []
    flags: list[str] = []
    outdated: list[str] = []


class RecallResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`abstained`: no memory is relevant enough, for the `reason`. `recall` names this answer for memory_feedback.
    `linked`: with `deep`, the memories one or two links away."""

    memories: list[Memory]
    turns: list[SessionTurn]
    abstained: bool
    reason: str
    searched: list[str]
    left_out: int
    pending: int
    recall: str = ""
    note: str = ""
    linked: list[Memory] = []


class RememberResult(msgspec.Struct, frozen=True, kw_only=True):
    """`kept`: the text waits on this machine until memd runs again; `pool`: "" until memd has chosen it. `refused`: the
    lines of a hand-over that name what the session does not have."""

    id: str
    status: str
    kept: bool
    note: str
    pool: str = ""
    refused: list[str] = []


class ForgetResult(msgspec.Struct, frozen=True, kw_only=True):
    """`hidden`: memories that no read shows any more; `proposed`: the proposals to the user."""

    hidden: list[str]
    proposed: list[str]
    note: str


class MemoryChange(msgspec.Struct, frozen=True, kw_only=True):
    """One change of a memory."""

    at: str
    what: str
    reason: str


class HistoryResult(msgspec.Struct, frozen=True, kw_only=True):
    """`true_from`, `true_until`: world time as RFC 3339, "" for open."""

    memory: Memory
    true_from: str
    true_until: str
    changes: list[MemoryChange]
    replaced: list[Memory]
    replaced_by: list[Memory]
    said_around: list[str]


class FeedbackResult(msgspec.Struct, frozen=True, kw_only=True):
    """`memories`: the number of rated memories."""

    memories: int
    note: str


class ProfileResult(msgspec.Struct, frozen=True, kw_only=True):
    """`ids`: the memories that the text is based on, in its revision `rev`."""

    text: str
    rev: str
    ids: list[str]
    searched: list[str]


class StatementRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """`number`: of the statement or the learning, from 1."""

    number: int
    reason: str


class ReflectResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`taken`: statements whose words the session has; `open`, `learnings`: those that were kept. Give the refused ones
    again with quotes that the session has, or leave them out."""

    taken: int
    open: int
    note: str
    learnings: int = 0
    refused: list[StatementRefusal] = []
    refused_learnings: list[StatementRefusal] = []
    refused_open: list[str] = []
    refused_title: str = ""


class IngestedDocument(msgspec.Struct, frozen=True, kw_only=True):
    """`id`: the summary's memory; `details`: passages that recall finds."""

    id: str
    document: str
    category: str
    summary: str
    details: int


class NegotiatedItems(msgspec.Struct, frozen=True, kw_only=True):
    """`of`: what the items are; `kinds`: how many of each category; `labels`: what the first ones are called; `tokens`:
    about how many everything has."""

    items: int
    of: str
    kinds: dict[str, int]
    options: list[str]
    labels: list[str]
    tokens: int


class IngestResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`negotiate`: nothing is taken until you decide; `passage`: the words behind a pointer, with those around them."""

    documents: list[IngestedDocument] = []
    negotiate: NegotiatedItems | None = None
    passage: str = ""
    note: str = ""


class KnownSkill(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A skill that the user placed. `uses`, `good`, `bad`: since then; `note`: what speaks against it."""

    name: str
    path: str
    rung: str
    uses: int = 0
    good: int = 0
    bad: int = 0
    last_used: str = ""
    note: str = ""


class SkillsResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Of memory_skills."""

    skills: list[KnownSkill] = []


class FittingAgent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent. `score`: expected share of such tasks that end well, `low` to `high` with 80 %; `outcomes`: of similar
    tasks; `by_role`: these are too few, so that its role decides; `running`: its tasks under way."""

    agent: str
    score: float
    low: float
    high: float
    outcomes: int
    by_role: bool
    recent: float
    running: int


class RankResult(msgspec.Struct, frozen=True, kw_only=True):
    """Of memory_rank_agents: the best one first. You choose."""

    agents: list[FittingAgent]


def schema(of: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON schema of a type with its parts in `$defs`, without the type's own docstring."""
    (_,), parts = msgspec.json.schema_components([of], ref_template="#/$defs/{name}")
    whole = dict(cast("dict[str, Any]", parts.pop(of.__name__)))
    for part in (whole, *parts.values()):
        part.pop("title", None)
        if part is whole:
            part.pop("description", None)
    return {**whole, "$defs": parts} if parts else whole


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool: the texts and flags that hosts show; its schemas are in `_SCHEMAS`. `on_request`: the name by which a
    host asks for it, "" for a tool that every host gets."""

    name: str
    title: str
    description: str
    is_write: bool = False
    is_destructive: bool = False
    is_idempotent: bool = True
    on_request: str = ""

    @property
    def takes(self) -> type[Arguments]:
        return _SCHEMAS[self.name][0]

    def listed(self) -> dict[str, Any]:
        """Return its entry in `tools/list`."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": schema(self.takes),
            "outputSchema": schema(_SCHEMAS[self.name][1]),
            "annotations": {
                "title": self.title,
                "readOnlyHint": not self.is_write,
                "destructiveHint": self.is_destructive,
                "idempotentHint": self.is_idempotent,
                "openWorldHint": False,
            },
        }


_SCHEMAS: dict[str, tuple[type[Arguments], type[msgspec.Struct]]] = {
    "memory_recall": (RecallArguments, RecallResult),
    "memory_remember": (RememberArguments, RememberResult),
    "memory_forget": (ForgetArguments, ForgetResult),
    "memory_history": (HistoryArguments, HistoryResult),
    "memory_profile": (ProfileArguments, ProfileResult),
    "memory_feedback": (FeedbackArguments, FeedbackResult),
    "memory_reflect": (ReflectArguments, ReflectResult),
    "memory_ingest": (IngestArguments, IngestResult),
    "memory_rank_agents": (RankArguments, RankResult),
    "memory_skills": (SkillsArguments, SkillsResult),
}


class ToolTexts(msgspec.Struct, frozen=True):
    """`tools.json`: the texts that hosts show to a model."""

    instructions: str
    resource: dict[str, str]
    tools: tuple[Tool, ...]


_TEXTS = msgspec.json.decode(Path(__file__).with_name("tools.json").read_bytes(), type=ToolTexts)
INSTRUCTIONS, RESOURCE = _TEXTS.instructions, _TEXTS.resource
TOOLS = tuple(tool for tool in _TEXTS.tools if not tool.on_request)
ON_REQUEST = {tool.on_request: tool for tool in _TEXTS.tools if tool.on_request}
URI = RESOURCE["uri"]
