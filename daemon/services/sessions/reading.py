"""What a session was about: its requests, edits, commits, checks and plan, its end, and what it left open (C1, C2).

Nothing is composed by a model: each text quotes a turn. Words that the user hid are covered, as in a transcript.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, zip_longest
from typing import Literal, NamedTuple

from ....protocol.event import (
    REFLECTED,
    Captured,
    Checked,
    Committed,
    HandedOver,
    Interrupted,
    Noted,
    PlanItem,
    Planned,
    Reflected,
    ReflectionAsked,
    Said,
    SentPart,
    ToolCalled,
    Wrote,
)
from ....protocol.instant import micros
from ....protocol.tool_calls import edited_path
from ....stages.commitments import subject
from ...projections.records import Records
from ...storage.archive import Archive
from .handover import checked_handover
from .transcript import shown_words

LEAST_REQUESTS = 2
"""Requests of a session without edits and commits, below which there is nothing to tell."""

LEAST_EDITS = 3
"""Edits of a session without commits that changed something."""

SITTING = 4 * 3600 * 1_000_000
"""Microseconds without an event after which a request begins another part of a session."""

PAUSE = 300 * 1_000_000
"""Microseconds between a message and a call, above which the message ended an answer."""

TITLE_STEMS = 4
"""Least stems, without stop words, of a request that gives the title."""

PLAN_CALLS = 25
"""Tool calls after the last change of a plan, above which the agent left it behind."""

LATER_REQUESTS = 2
"""Last requests in which the user's word may put something off."""

WIDTH, TITLE = 200, 100
"""Most characters of a text, and of a title."""

EDIT, COMMIT, CALL = 1.0, 3.0, 0.15
"""What a request weighs by what the agent did until the next one; a request of fewer than eight words weighs less."""

_DELEGATING = frozenset({"task", "agent", "spawn_agent", "subagent"})
_TESTS = re.compile(r"test|spec|jest|mocha|tox|nox|ava\b|cypress|playwright", re.IGNORECASE)
_STYLE = re.compile(r"lint|pre-commit|ruff|flake8|biome|prettier|black|shellcheck|credo", re.IGNORECASE)
_MESSAGE = re.compile(r"commit\b[^\n]*?\s-\w*m\s*(?:[\"']?\$\(cat <<-?\s*[\"']?\w+[\"']?\n)?[\"']?([^\n\"]{3,160})")
_BEGIN = r"""(?:["'(;\n]|&&|\|\||\\n)\s*"""  # of a command
_REMOVING = re.compile(_BEGIN + r"(?:git )?rm ([^;&|\n\"\\]+)")
_COMMITTING = re.compile(_BEGIN + r"git (?:-[cC] ?\S+ )*commit(?![\w-])")
_GIT_STEP = re.compile(
    _BEGIN + r"(git (?:push(?: -f| --force)?|merge [\w./-]+|rebase [\w./-]+|stash|revert|"
    r"(?:checkout -b|switch -c) [\w./-]+)|gh pr (?:create|merge))(?![\w-])"
)
_DULL = re.compile(r"(?:release|merge|wip|bump|version)\b|v?\d+\.\d+", re.IGNORECASE)
_LATER = re.compile(
    r"\b(?:tomorrow|next (?:time|session)|remind me|come back to (?:it|this|that)|later today"
    r"|morgen|nächstes mal|erinner\w* mich|demain|la prochaine fois|mañana|la próxima vez|domani)\b",
    re.IGNORECASE,
)
SENTENCE = re.compile(r"(?:[^.!?\n]|[.!?](?!\s|$))+[.!?]*")
"""A sentence or a line; a point within a word, such as that of a file's name, ends none."""


PLANNED_OPEN = frozenset({"open", "begun"})

OpenKind = Literal["plan", "request", "check", "later", "handover"]


_OF_READERS = HandedOver | Reflected | ReflectionAsked | SentPart
"""Events that readers of a session add to it, perhaps days after its end (W4, C1)."""


class OpenItem(NamedTuple):
    """Something that a session left open, in the words of a turn."""

    kind: OpenKind
    text: str
    turn: str
    at: str
    note: str = ""


class SessionReading:
    """Reads the captures of a session, or of a part of one."""

    def __init__(self, captures: Sequence[Captured], records: Records) -> None:
        """`captures`: in order."""
        self.captures, self._records = captures, records
        self.requests = [captured for captured in captures if is_request(captured)]
        self.commits = _unamended(c.event for c in captures if isinstance(c.event, Committed))
        self.checks = [captured.event for captured in captures if isinstance(captured.event, Checked)]
        paths = (path_of(captured.event) for captured in captures if isinstance(captured.event, ToolCalled))
        self.files = Counter(filter(None, paths))
        self._handed, self.handover = checked_handover(captures)
        self.plan: tuple[PlanItem, ...] = next((p.items for c in captures if isinstance(p := c.event, Planned)), ())

    @cached_property
    def unseen_commits(self) -> list[str]:
        """The subjects of commands that commit, of which no output told a commit with that subject, each once; "" for
        commands whose subject is not known."""
        seen = {captured.event.turn.partition("#")[0] for captured in self.captures if _is_commit(captured)}
        told = [call for call in self._calls() if is_committing(call)]
        subjects = dict.fromkeys(_subject_in(call.arguments) for call in told if call.turn not in seen)
        known = [commit.subject for commit in self.commits]
        return [
            words
            for words in subjects
            if not any(words and subject.startswith(words[:-1].rstrip()) for subject in known)
        ]

    @property
    def kept_files(self) -> Counter[str]:
        """The files that were edited, without those that a later command removed."""
        return _kept(self._calls())

    @property
    def edited_since_commit(self) -> Counter[str]:
        """The files that were edited after the last commit, by the agent itself or by a subagent, which may commit."""
        places = [place for place, captured in enumerate(self.captures) if _may_commit(captured)]
        after = self.captures[places[-1] :] if places else ()
        return _kept(captured.event for captured in after if isinstance(captured.event, ToolCalled))

    @property
    def git_steps(self) -> list[str]:
        """Git commands that change what others see or where work goes on, in their order, each once: a push, a merge,
        a branch, a pull request."""
        found = (
            match
            for call in self._calls()
            if "git" in call.arguments or "gh " in call.arguments
            for match in _GIT_STEP.findall(call.arguments)
        )
        return list(dict.fromkeys(" ".join(match.split()) for match in found))

    @property
    def refused_calls(self) -> list[ToolCalled]:
        """The calls that the user did not allow."""
        calls = (captured.event for captured in self.captures if isinstance(captured.event, ToolCalled))
        return [call for call in calls if call.outcome == "refused"]

    def _calls(self) -> list[ToolCalled]:
        """Return the calls that went well, as far as the host tells; a last one without a result may not have run."""
        calls = [captured.event for captured in self.captures if isinstance(captured.event, ToolCalled)]
        ran = calls[:-1] if calls and calls[-1].outcome == "unknown" else calls
        return [call for call in ran if call.outcome in {"ok", "unknown"}]

    @property
    def subjects(self) -> list[str]:
        """The subjects of all commits that are known."""
        return [*(commit.subject for commit in self.commits), *filter(None, self.unseen_commits)]

    @property
    def is_worth_telling(self) -> bool:
        """Whether the session has enough for a summary."""
        return len(self.requests) >= LEAST_REQUESTS or bool(self.files) or bool(self.commits)

    @property
    def has_worked(self) -> bool:
        """Whether the session changed something."""
        return self.files.total() >= LEAST_EDITS or bool(self.commits)

    @property
    def last_at(self) -> str:
        """The time of the last event, "" without one. What a reader did later, such as a reflection by `memd session
        reflect`, is no part of the session."""
        own = [captured for captured in self.captures if not isinstance(captured.event, _OF_READERS)]
        return max((captured.event.at for captured in own or self.captures), key=micros, default="")

    def words(self, captured: Captured) -> str:
        """Return the words of a turn, without those that the user hid."""
        return shown_words(captured, self._records)

    def title(self, given: str) -> str:
        """Return the host's title, else that of the newest reflection, else the subject of the commit with most files,
        else the first item of the plan, else the first sentence of the first request that has enough words of its
        own."""
        if given:
            return given
        reflected = (c.event.title for c in reversed(self.captures) if isinstance(c.event, Reflected))
        if title := next(filter(None, reflected), ""):
            return title
        telling = [commit for commit in self.commits if not _DULL.match(commit.subject)]
        if telling:
            return cut(max(telling, key=lambda commit: commit.files).subject)
        if subjects := [subject for subject in self.unseen_commits if subject and not _DULL.match(subject)]:
            return subjects[0]
        if self.plan:
            return cut(self.plan[0].text, TITLE)
        spoken = (_sentence(self.words(request)) for request in self.requests)
        first = next(spoken, "")
        long = (words for words in chain([first], spoken) if len(subject(words)) >= TITLE_STEMS)
        return cut(next(long, first), TITLE)

    def weights(self) -> list[float]:
        """Return what each request led to: edits, commits and calls until the next one."""
        weights: list[float] = []
        for captured in self.captures:
            event = captured.event
            if is_request(captured):
                weights.append(0.0)
            elif weights:
                weights[-1] += COMMIT * isinstance(event, Committed)
                if isinstance(event, ToolCalled):
                    weights[-1] += EDIT if path_of(event) else CALL
        lengths = (len(self.words(captured).split()) for captured in self.requests)
        return [(0.1 + weight) * min(1.0, words / 8) for weight, words in zip(weights, lengths, strict=True)]

    @property
    def broke_off(self) -> Literal["", "user", "error"]:
        """Who ended the work before its end, "" if nobody did: nothing was said or called after an interruption."""
        for captured in reversed(self.captures):
            if isinstance(captured.event, Interrupted):
                return captured.event.by
            if isinstance(captured.event, Said | ToolCalled):
                break
        return ""

    def open_items(self) -> Iterator[OpenItem]:
        """Yield what the session leaves open: a last request without an answer, items of the agent's plan, checks that
        failed in the last run of their kind, and where there is no plan, what the user put off."""
        unanswered, planned = list(self._unanswered()), list(self._planned())
        yield from (*unanswered, *planned)
        for line in self.handover:
            if self._handed and line.section == "open":
                note = "" if line.state == "verified" else "the agent says"
                yield OpenItem("handover", cut(line.text), self._handed.turn, self._handed.at, note)
        for check in {check_kind(check.what): check for check in self.checks}.values():
            if check.state == "failed":
                yield OpenItem("check", check.what, check.turn, check.at, "failed")
        if not unanswered and not planned:
            yield from self._put_off()

    def _is_left(self) -> bool:
        """Whether the session ends with a call, although its agent ends answers with a message."""
        acts = [captured.event for captured in self.captures if isinstance(captured.event, Said | ToolCalled)]
        speaks = any(isinstance(act, Said) and act.role == "assistant" for act in acts)
        if self.broke_off or not speaks or not isinstance(acts[-1], ToolCalled):
            return False
        return not is_answered(self.captures[self.captures.index(self.requests[-1]) :])

    def _planned(self) -> Iterator[OpenItem]:
        """Yield the open items of the agent's plan, unless the agent left it behind. One that it began may be done if
        it edited files after it ticked an item last."""
        told = next((c for c in self.captures if isinstance(c.event, Planned)), None)
        if told is None:  # by a client that tells no plan
            yield from self._left_open()
            return
        at = micros(told.event.at)
        calls = [c.event for c in self.captures if isinstance(c.event, ToolCalled) and micros(c.event.at) > at]
        is_edited = any(map(path_of, calls))
        for item in self.plan if len(calls) <= PLAN_CALLS else ():
            if item.status in PLANNED_OPEN:
                note = "maybe done" if is_edited and item.status == "begun" else ""
                yield OpenItem("plan", cut(item.text), told.event.turn, told.event.at, note)

    def _left_open(self) -> Iterator[OpenItem]:
        """Yield the items of a list of what a session leaves open."""
        for captured in self.captures:
            if isinstance(captured.event, Wrote) and captured.event.form == "open":
                for line in self.words(captured).splitlines():
                    if words := line.strip(" -*"):
                        yield OpenItem("plan", cut(words), captured.event.turn, captured.event.at)

    def _put_off(self) -> Iterator[OpenItem]:
        """Yield sentences of the last requests by which the user put something off."""
        for captured in self.requests[-LATER_REQUESTS:]:
            for sentence in SENTENCE.findall(self.words(captured)):
                if _LATER.search(sentence):
                    yield OpenItem("later", cut(sentence), captured.event.turn, captured.event.at, "you said")

    def _unanswered(self) -> Iterator[OpenItem]:
        """Yield the last request if an error cut it off, if the agent was still calling tools, or if it is a question
        that nobody answered. Most other words that close a session only take leave."""
        last = self.requests[-1] if self.requests else None
        said = next((c for c in reversed(self.captures) if isinstance(c.event, Said)), None)
        is_cut_off = self.broke_off == "error"
        if last is None:
            return
        if is_cut_off or self._is_left() or (said is last and "?" in self.words(last)):
            after = self.captures[self.captures.index(last) :]
            calls = [captured.event for captured in after if isinstance(captured.event, ToolCalled)]
            if not is_cut_off and any(map(is_committing, calls)):
                return  # it was done without a word
            note = "cut off by an error" if is_cut_off else "begun, no answer" if calls else "unanswered"
            yield OpenItem("request", cut(first_line(self.words(last))), last.event.turn, last.event.at, note)


def reflected_title(archive: Archive, document: str) -> str:
    """Return the title that the newest reflection on a session gave, "" for none. It reads no other turn."""
    title, number = "", 1
    while archive.seq_of(document, f"{REFLECTED}{number}"):
        captured = archive.turn(document, f"{REFLECTED}{number}")
        if captured is not None and isinstance(captured.event, Reflected):
            title = captured.event.title or title
        number += 1
    return title


def parts_of(captures: Sequence[Captured]) -> list[list[Captured]]:
    """Return the captures of a session by sitting: a request long after all before it begins a new part."""
    parts: list[list[Captured]] = [[]]
    latest = 0
    for captured in captures:
        at = micros(captured.event.at)
        if latest and at - latest > SITTING and is_request(captured):
            parts.append([])
        latest = max(latest, at)
        parts[-1].append(captured)
    return parts


def check_kind(what: str) -> str:
    """Return the kind of a check; the last run of a kind tells how it stands."""
    return "tests" if _TESTS.search(what) else "style" if _STYLE.search(what) else "build"


def path_of(call: ToolCalled) -> str:
    """Return the file that a call edited, "" for another call; its last two parts, as a reader knows it."""
    return "" if call.outcome in {"error", "refused"} else edited_path(call)


def is_committing(call: ToolCalled) -> bool:
    """Whether a call runs `git commit`."""
    return "commit" in call.arguments and _COMMITTING.search(call.arguments) is not None


def is_request(captured: Captured) -> bool:
    """Whether a capture is a text that the user typed."""
    event = captured.event
    return isinstance(event, Said | Noted) and event.role == "user" and bool(event.text.strip())


def _subject_in(arguments: str) -> str:
    """Return the subject of a command that commits, which may be cut off."""
    found = _MESSAGE.search(arguments.replace('\\"', '"').replace("\\n", "\n"))
    return cut(found[1].strip(" \"'")) if found else ""


def is_answered(captures: Sequence[Captured]) -> bool:
    """Whether the agent answers: it says something, and no call follows within minutes."""
    acts = [captured.event for captured in captures if isinstance(captured.event, Said | ToolCalled)]
    for act, after in zip_longest(acts, acts[1:]):
        ends = not isinstance(after, ToolCalled) or micros(after.at) - micros(act.at) > PAUSE
        if ends and isinstance(act, Said) and act.role == "assistant":
            return True
    return False


def is_answer(captured: Captured) -> bool:
    """Whether a capture answers a question of the agent, by the host's own word."""
    return isinstance(captured.event, Said) and bool(captured.event.answers)


def _kept(calls: Iterable[ToolCalled]) -> Counter[str]:
    """Return the files that calls edit and no later call removes, each with its edits."""
    kept = Counter[str]()
    for call in calls:
        if path := path_of(call):
            kept[path] += 1
        for name in _removed_by(call):
            kept = Counter({path: count for path, count in kept.items() if path.rpartition("/")[2] != name})
    return kept


def _removed_by(call: ToolCalled) -> Iterator[str]:
    """Yield the names of the files that a command removes."""
    if "rm " in call.arguments:
        for match in _REMOVING.findall(call.arguments):
            yield from (word.rstrip("/\"'").rpartition("/")[2] for word in match.split())


def _may_commit(captured: Captured) -> bool:
    event = captured.event
    is_call = isinstance(event, ToolCalled) and (is_committing(event) or event.name.casefold() in _DELEGATING)
    return is_call or isinstance(event, Committed)


def _is_commit(captured: Captured) -> bool:
    return isinstance(captured.event, Committed)


def _unamended(commits: Iterable[Committed]) -> list[Committed]:
    """Return the commits, without those that the next one amended: the same subject again."""
    kept: list[Committed] = []
    for commit in commits:
        if kept and kept[-1].subject == commit.subject:
            kept.pop()
        kept.append(commit)
    return kept


def first_line(words: str) -> str:
    """Return the first line of a request that has words, with the next one where it only announces that."""
    lines = [line for line in (line.strip(" #*>`-") for line in words.splitlines()) if sum(map(str.isalpha, line)) > 2]
    if not lines:
        return " ".join(words.split())
    return " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]


def _sentence(words: str) -> str:
    """Return the first sentence of a request."""
    line = first_line(words)
    return next(iter(SENTENCE.findall(line)), line).strip(" .")


def cut(words: str, width: int = WIDTH) -> str:
    """Return the words in one line of at most `width` characters."""
    words = " ".join(words.split())
    return words if len(words) <= width else f"{words[: width - 1].rstrip()}…"
