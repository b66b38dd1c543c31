"""Evidence counted by day and conversation (G3): copies of one turn, a session's subagents, what memd told a session,
saved transcripts and documents of the same session are no evidence of their own.

Invariants: statements of one conversation are one instance, however many files and days it has; statements of one day
are one instance; beside a single conversation a document counts only if it is older, since a later one may repeat it;
an instance quotes nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

from ....protocol.event import Captured, Checked, Committed, Said, ToolCalled, Trust, Wrote, trust
from ....protocol.record import Artifact, Record, Span
from ....stages.batch import Given
from ...projections.sources import own_family
from ...projections.stores import Stores

USER, ASSISTANT, ARTIFACT, MERGED, CHECKED = 0.85, 0.55, 0.6, 0.7, 0.6
"""Weight of one instance: the user's words, an agent's, a committed document or commit, a merged pull request, an
agent's words beside a passed check of what they name."""

MOST_CONFIDENT = 0.95

LONG = 40
"""Characters of a line from which it stands in a document by no accident."""

SAVED_TURNS = 2
"""Turns of a session whose lines a document has, from which it is that session's transcript."""

SPEAKERS = 2
"""Headings of the user and of an agent, from which a document is a transcript."""

MARKDOWN, GIT = "markdown", "git"

_USER_SPEAKS = re.compile(r"(?:^|> )\W*(?:user|human|you|me|prompt)\b[\W\d]*(?:\([^)]*\)|turn|said|message)?\W*$", re.I)
_AGENT_SPEAKS = re.compile(r"(?:^|> )\W*(?:assistant|agent|ai|claude|codex|gemini|gpt|copilot)\b.{0,20}$", re.I)
_MERGED = re.compile(r"^Merge pull request #(\d+)|\(#(\d+)\)$|^Merge .*!(\d+)\b")
_REQUEST = re.compile(r"https?://\S+/(?:pull|merge_requests)/(\d+)\b")
_READS = frozenset("read grep glob ls search view list cat".split())
_COMMITS = re.compile(r"\bgit\b.{0,40}\bcommit\b")


class CommittedFile(Protocol):
    """A file at HEAD: its text, its path in the repository, the repository's top folder, and the commit that changed it
    last with its day."""

    @property
    def text(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def root(self) -> str: ...
    @property
    def commit(self) -> str: ...
    @property
    def day(self) -> str: ...


GivenTo = Callable[[Iterable[Captured]], Mapping[str, Given]]
AtHead = Callable[[str], CommittedFile | None]


class EvidenceInstance(NamedTuple):
    """A piece of evidence. `family`: the conversation, or the repository of a document; `weight`: the probability that
    it alone makes the statement right; `since`: the day from which a document states it, "" if the user named it as
    evidence."""

    type: str
    family: str
    day: str
    weight: float
    ref: str
    note: str = ""
    is_durable: bool = False
    since: str = ""


class Sighting(NamedTuple):
    """A place that states what a record says."""

    record: Record
    span: Span
    trust: Trust
    at: str
    captured: Captured | None


class CountedEvidence(NamedTuple):
    """The independent instances of a belief, the best one first, and what was no instance, by its reason."""

    instances: tuple[EvidenceInstance, ...]
    not_counted: Counter[str]
    is_in_rules: bool

    @property
    def confidence(self) -> float:
        return confidence(self.instances)

    @property
    def conversations(self) -> tuple[EvidenceInstance, ...]:
        return tuple(instance for instance in self.instances if not instance.is_durable)

    def by_user(self) -> tuple[EvidenceInstance, ...]:
        """Return the user's own statements."""
        return tuple(instance for instance in self.instances if instance.type == "user")


def confidence(instances: Iterable[EvidenceInstance]) -> float:
    """Return 1 − Π(1 − c) over independent instances, at most `MOST_CONFIDENT`."""
    doubt = 1.0
    for instance in instances:
        doubt *= 1.0 - instance.weight
    return round(min(MOST_CONFIDENT, 1.0 - doubt), 4)


def independent(told: Iterable[EvidenceInstance]) -> list[EvidenceInstance]:
    """Return the most instances of which no two share a conversation or a day, strong ones before weak ones."""
    of_family: dict[str, list[EvidenceInstance]] = {}
    for instance in sorted(told, key=_strength):
        of_family.setdefault(instance.family, []).append(instance)
    on_day: dict[str, EvidenceInstance] = {}

    def place(family: str, tried: set[str]) -> bool:
        for instance in of_family[family]:
            if instance.day in tried:
                continue
            tried.add(instance.day)
            if instance.day not in on_day or place(on_day[instance.day].family, tried):
                on_day[instance.day] = instance
                return True
        return False

    for family in sorted(of_family, key=lambda family: _strength(of_family[family][0])):
        place(family, set())
    return sorted(on_day.values(), key=_strength)


def _strength(instance: EvidenceInstance) -> tuple[float, str, str]:
    return -instance.weight, instance.day, instance.family


class EvidenceCounter:
    """Counts the evidence of beliefs during one run."""

    def __init__(self, stores: Stores, given: GivenTo, at_head: AtHead) -> None:
        self._stores, self._given, self._at_head = stores, given, at_head
        self._families: dict[str, str] = {}
        self._turns: dict[str, Sequence[Captured]] = {}

    def may_be_independent(self, records: Sequence[Record]) -> bool:
        """Return whether records rest on more than one document; else no archive needs to be read."""
        spans = {span.document for record in records for span, _, _ in _spans(record)}
        return len(spans) > 1 or any(record.artifacts for record in records)

    def of(self, records: Sequence[Record]) -> CountedEvidence:
        """Return the evidence of records that say the same."""
        sightings = _without_copies(sighting for record in records for sighting in self._sightings(record))
        spoken = [sighting for sighting in sightings if _is_spoken(sighting)]
        written = [sighting for sighting in sightings if sighting.trust == "document"]
        conversation = _Conversation(self, records, spoken)
        not_counted = Counter[str]()
        told, durable = list[EvidenceInstance](), dict[tuple[str, str], EvidenceInstance]()
        for sighting in spoken:
            if conversation.was_told(sighting):
                not_counted["memd told the session"] += 1
            else:
                told.append(self._spoken(sighting, conversation))
        for found in (*map(conversation.document, written), *self._named(records, conversation)):
            if isinstance(found, str):
                not_counted[found] += 1
            elif found.weight > durable.get(place := (found.family, found.day), found).weight or place not in durable:
                durable[place] = found
        spoken_on = independent(told)
        not_counted["copies, or one conversation or day"] += len(told) - len(spoken_on)
        first = min((each.day for each in told), default="")
        proving = [each for each in durable.values() if len(spoken_on) > 1 or each.since < first]
        not_counted["it may only repeat the one conversation"] += len(durable) - len(proving)
        instances = (*spoken_on, *sorted(proving, key=_strength))
        from ....stages.sections import instructs  # its rules load slowly, and a start needs none

        is_in_rules = any(sighting.captured and instructs(sighting.captured.event) for sighting in written)
        return CountedEvidence(instances, +not_counted, is_in_rules)

    def turn_of(self, record: Record) -> tuple[str, str]:
        """Return the text of the turn that states a record, and of the turn before it; "" for what is gone."""
        span = next(iter(record.provenance.spans), None)
        turns = self.turns(span.document) if span else ()
        said = [captured.event for captured in turns if isinstance(captured.event, Said)]
        at = next((place for place, event in enumerate(said) if span and event.turn == span.turn), None)
        if at is None:
            return "", ""
        return said[at].text, said[at - 1].text if at else ""

    def family(self, document: str) -> str:
        """Return the conversation of a document; a subagent belongs to its session's."""
        if document not in self._families:
            host, _, name = document.partition(":")
            session = document if host in (MARKDOWN, GIT) else f"{host}:{name.partition('/')[0]}"
            entry = self._stores.sources.session(session)
            self._families[document] = entry.family if entry else own_family(session)
        return self._families[document]

    def documents(self, family: str) -> Sequence[str]:
        """Return the documents of a conversation: the session, its copies, its subagents."""
        return self._of_family.get(family, ())

    @cached_property
    def _of_family(self) -> Mapping[str, Sequence[str]]:
        of_family: dict[str, list[str]] = {}
        for document in sorted(self._stores.sources.sessions()):
            of_family.setdefault(self.family(document), []).append(document)
        return of_family

    def turns(self, document: str) -> Sequence[Captured]:
        """Return the captures of a document, read once."""
        if document not in self._turns:
            self._turns[document] = self._stores.archive.turns(document)
        return self._turns[document]

    def head(self, file: str) -> CommittedFile | None:
        """Return a file at HEAD, None if no commit has it."""
        return self._at_head(file)

    def given_to(self, captured: Captured) -> tuple[str, ...]:
        """Return the records that memd gave to the session of a turn."""
        given = self._given([captured]).get(captured.document)
        return given.ids if given else ()

    def _sightings(self, record: Record) -> Iterator[Sighting]:
        for span, trusted, at in _spans(record):
            captured = self._stores.archive.turn(span.document, span.turn)
            known = trust(captured.event) if captured else trusted
            yield Sighting(record, span, known, captured.event.at if captured else at, captured)

    def _spoken(self, sighting: Sighting, conversation: _Conversation) -> EvidenceInstance:
        family, day = self.family(sighting.span.document), sighting.at[:10]
        if sighting.trust == "user":
            return EvidenceInstance("user", family, day, USER, day)
        if conversation.is_checked(sighting):
            return EvidenceInstance("session", family, day, CHECKED, day, "beside a passed check")
        return EvidenceInstance("session", family, day, ASSISTANT, day)

    def _named(self, records: Iterable[Record], conversation: _Conversation) -> Iterator[EvidenceInstance | str]:
        """Yield the durable things that the user named as evidence."""
        for record in records:
            for artifact in record.artifacts:
                yield conversation.artifact(artifact)


class _Conversation:
    """The sessions in which a belief was told, against which its documents are judged."""

    def __init__(self, counter: EvidenceCounter, records: Sequence[Record], spoken: Sequence[Sighting]) -> None:
        self._counter, self._records = counter, records
        self._ids = {id for record in records for id in (record.id, *record.supersedes)}
        families = {counter.family(sighting.span.document) for sighting in spoken}
        self._documents = tuple(document for family in sorted(families) for document in counter.documents(family))

    def was_told(self, sighting: Sighting) -> bool:
        """Whether an agent said what memd had given to its session (W9)."""
        if sighting.trust == "user" or sighting.captured is None:
            return False
        return not self._ids.isdisjoint(self._counter.given_to(sighting.captured))

    def is_checked(self, sighting: Sighting) -> bool:
        """Whether a check that the statement names passed in its session."""
        said = f" {_folded(sighting.record.content)} "
        return any(
            isinstance(captured.event, Checked)
            and captured.event.state == "passed"
            and f" {_folded(captured.event.what)} " in said
            for captured in self._counter.turns(sighting.span.document)
        )

    def document(self, sighting: Sighting) -> EvidenceInstance | str:
        """Return the instance that a document is, or the reason why it does not count."""
        captured = sighting.captured
        if captured is None or not isinstance(captured.event, Wrote) or not captured.event.text:
            return "its source is gone"
        host = captured.document.partition(":")[0]
        if host == GIT:
            return self._commit(captured.document, captured.event)
        return self._file(_file_of(captured), sighting.record, captured.document) if host == MARKDOWN else "no commit"

    def artifact(self, artifact: Artifact) -> EvidenceInstance | str:
        """Return the instance that an artifact of a record is, or the reason why it does not count."""
        if artifact.type == "file":
            return self._at_head(artifact.ref.partition("#")[0])
        if artifact.type == "commit":
            return EvidenceInstance(
                "commit", f"commit:{artifact.ref}", "", ARTIFACT, artifact.ref[:12], is_durable=True
            )
        request = _REQUEST.search(artifact.ref)
        kind, ref = ("pr", f"#{request[1]}") if request else ("artifact", artifact.ref)
        return EvidenceInstance(kind, f"url:{artifact.ref}", "", ARTIFACT, ref, is_durable=True)

    def _commit(self, document: str, event: Wrote) -> EvidenceInstance | str:
        if self._is_agents_commit(event.turn, event.at[:10]):
            return "written in the same session"
        merged = _MERGED.search(event.text.partition("\n")[0].strip())
        number = next(filter(None, merged.groups()), "") if merged else ""
        kind, weight, ref = ("pr", MERGED, f"#{number}") if number else ("commit", ARTIFACT, event.turn[:12])
        day = event.at[:10]
        return EvidenceInstance(kind, document, day, weight, ref, is_durable=True, since=day)

    def _file(self, file: str, record: Record, document: str) -> EvidenceInstance | str:
        if self._is_transcript(document):
            return "a saved transcript"
        return self._at_head(file, record.content)

    def _at_head(self, file: str, words: str = "") -> EvidenceInstance | str:
        head = self._counter.head(file) if file.startswith("/") else None
        if head is None or (words and _folded(words) not in _folded(head.text)):
            return "no commit"
        if self._wrote(head.path.rpartition("/")[2]) and self._is_agents_commit(head.commit, head.day):
            return "written in the same session"
        if self._holds_turns(head.text.splitlines()):
            return "a saved transcript"
        ref = f"{head.path}@{head.commit[:12]}"
        since = head.day if words else ""
        return EvidenceInstance("artifact", f"files:{head.root}", "", ARTIFACT, ref, is_durable=True, since=since)

    @cached_property
    def _captures(self) -> tuple[Captured, ...]:
        return tuple(captured for document in self._documents for captured in self._counter.turns(document))

    def _calls(self) -> Iterator[ToolCalled]:
        for captured in self._captures:
            if isinstance(captured.event, ToolCalled) and captured.event.name.casefold() not in _READS:
                yield captured.event

    def _wrote(self, name: str) -> bool:
        """Whether a session of the belief may have written a file of this name."""
        return any(name in call.arguments for call in self._calls())

    def _is_agents_commit(self, commit: str, day: str) -> bool:
        """Whether a session of the belief made a commit: it noted its id, or it committed that day and noted none."""
        noted = [captured.event.id for captured in self._captures if isinstance(captured.event, Committed)]
        if noted:
            return any(id and commit.startswith(id) for id in noted)
        return any(
            isinstance(captured.event, ToolCalled)
            and captured.event.at[:10] == day
            and _COMMITS.search(captured.event.arguments)
            for captured in self._captures
        )

    def _is_transcript(self, document: str) -> bool:
        parts = [captured.event for captured in self._counter.turns(document) if isinstance(captured.event, Wrote)]
        above = list(dict.fromkeys(part.path.partition("#")[2] for part in parts))
        if min(sum(bool(speaks.search(path)) for path in above) for speaks in (_USER_SPEAKS, _AGENT_SPEAKS)) >= 1:
            return True
        lines = [line for part in parts for line in (*part.text.splitlines(), part.path.partition("#")[2])]
        return self._holds_turns(lines)

    def _holds_turns(self, lines: Iterable[str]) -> bool:
        """Whether a document has the speakers of a conversation, or lines of several turns of these sessions."""
        rows = list(lines)
        speakers = [sum(bool(speaks.search(row)) for row in rows) for speaks in (_USER_SPEAKS, _AGENT_SPEAKS)]
        if min(speakers) >= SPEAKERS:
            return True
        long = {folded for row in rows if len(folded := _folded(row)) >= LONG}
        turns = (captured.event for captured in self._captures if isinstance(captured.event, Said))
        return bool(long) and sum(not long.isdisjoint(map(_folded, turn.text.splitlines())) for turn in turns) >= (
            SAVED_TURNS
        )


def _spans(record: Record) -> Iterator[tuple[Span, Trust, str]]:
    """Yield the places of a record's statement, each with its trust and time."""
    said = record.provenance
    for span in said.spans:
        yield span, said.trust, said.said_at
    for item in said.evidence:
        yield item.span, item.trust, item.at


def _without_copies(sightings: Iterable[Sighting]) -> list[Sighting]:
    """Return sightings without turns that a host copied under the same name and time into another file."""
    known: dict[tuple[str, str], str] = {}
    own: list[Sighting] = []
    for sighting in sightings:
        turn = sighting.span.turn, sighting.at
        if known.setdefault(turn, sighting.span.document) == sighting.span.document:
            own.append(sighting)
    return own


def _is_spoken(sighting: Sighting) -> bool:
    return sighting.trust in ("user", "assistant")


def _file_of(captured: Captured) -> str:
    """Return the path of an imported Markdown file; of a long one the document's name is a hash."""
    name = captured.document.partition(":")[2]
    path = captured.event.path.partition("#")[0] if isinstance(captured.event, Wrote) else ""
    return name if name.startswith("/") else path


def _folded(words: str) -> str:
    return " ".join(re.findall(r"\w+", words.casefold()))
