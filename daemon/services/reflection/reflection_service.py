"""Takes what other readers found in a session (W4): the agent that was there, or a model that the user configured.

Invariants: nothing is kept but places in the archive, the title, the open items and the learnings; whatever a reader
says passes the same check and then the same stages as the statements of memd's own model; words of a reader that tell
an agent what to do are not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from ....protocol.errors import InvalidRequest, NotFound
from ....protocol.event import (
    REFLECTED,
    AnyEvent,
    Captured,
    Origin,
    Pointed,
    Pointer,
    Reflected,
    ReflectionAsked,
    Said,
    Wrote,
)
from ....protocol.instant import from_micros
from ....protocol.reflection import (
    AskReflection,
    Reason,
    Reflect,
    ReflectedLearning,
    Reflection,
    ReflectionQuestion,
    RefusedStatement,
    Statement,
)
from ....protocol.scope import concern_name
from ....protocol.session import HandOver, HandoverTaken
from ...projections.placement import agent_pool
from ...projections.sources import SessionEntry
from ..admission import admit
from ..core import Core
from ..events import CapturesCommitted
from ..outgoing_screen import flags_in
from ..service import Handlers, Service, owner
from ..statements import stated_spans
from ..token_estimate import tokens
from ..write_thread import Writer
from .question import AGENT, ASKED, ReflectionProgress, question
from .quotes import SessionQuotes

Missing = Callable[[Sequence[Captured], str], Sequence[str]]
"""Returns the paths, commits and numbers of a line that a session does not have."""


class ReflectionService(Service):
    """Finds the quotes on the slow lane, and captures on the write thread."""

    name = "reflection"

    def __init__(
        self,
        core: Core,
        writer: Writer,
        hand_over: Callable[[HandOver], HandoverTaken],
        missing: Missing,
        is_left_out: Callable[[Origin], bool],
    ) -> None:
        """`hand_over`: checks and keeps the open items; called on the write thread. `is_left_out`: whether memd takes
        no events of an origin now."""
        self._stores, self._gate, self._now = core.stores, core.gate, core.world.now
        self._captures, self._activity, self._writer = core.captures, core.activity, writer
        self._hand_over, self._missing, self._is_left_out = hand_over, missing, is_left_out
        self._progress = ReflectionProgress(core.stores)

    @property
    def handlers(self) -> Handlers:
        return {Reflect: owner("slow", self.reflect), AskReflection: owner("slow", self.ask)}

    def ask(self, request: AskReflection) -> ReflectionQuestion:
        """Return whether the question for the agent of a session is due; note that it is asked if the request says so.
        Raises StorageFull."""
        session = self._stores.sources.session(request.document)
        if session is None or self._stores.forgotten.hiding(request.document):
            return ReflectionQuestion(why="memd does not have this session")
        if self._is_left_out(session.opened.origin):
            return ReflectionQuestion(why="memd is paused, or ignores the folder of this session")
        if why := self._progress.why_not(request.document):
            return ReflectionQuestion(why=why)
        text = question(self._perspectives(session.opened.origin))
        cost = tokens(text)
        if not request.now:
            return ReflectionQuestion(due=True, tokens=cost)
        at = from_micros(self._now())
        self._write(session, lambda: ReflectionAsked(turn=ASKED, at=at, tokens=cost), urgent=False)
        self._activity.note("asked", f"the agent of {request.document} for a reflection, about {cost} tokens")
        return ReflectionQuestion(due=True, text=text, tokens=cost)

    def reflect(self, request: Reflect) -> Reflection:
        """Take what the agent of a session found in it. Raises NotFound, InvalidRequest."""
        if not (request.statements or request.open or request.learnings or request.title.strip()):
            raise InvalidRequest("the reflection is empty", hint="name statements with their quotes, or a title")
        session = self._stores.sources.session(request.document)
        if session is None:
            raise NotFound(f"no session {request.document!r}", hint="`memd session list` shows the sessions")
        reader = f"{AGENT}:{session.opened.origin.host}"
        reflection = self.take(
            request.document,
            reader,
            request.at,
            request.statements,
            title=request.title,
            open=request.open,
            learnings=request.learnings,
        )
        orders = tuple(line for line in request.open if _is_order(line))
        items = tuple(line for line in request.open if line not in orders)
        if items:
            handed = HandOver(document=request.document, at=request.at, open=items)
            lines = self._writer.run(lambda: self._hand_over(handed)).result().lines
            refused = tuple(line.text for line in lines if line.state == "refused")
            reflection = msgspec.structs.replace(reflection, open=len(lines) - len(refused), refused_open=refused)
        return msgspec.structs.replace(reflection, refused_open=(*reflection.refused_open, *orders))

    def take(
        self,
        document: str,
        reader: str,
        at: str,
        statements: Sequence[Statement],
        *,
        title: str = "",
        open: Sequence[str] = (),
        learnings: Sequence[ReflectedLearning] = (),
        given: Sequence[Captured] | None = None,
    ) -> Reflection:
        """Capture the statements of a reader whose quotes the session has. `given`: the only captures that the reader
        was given, None for all; `open`: the rest of its answer, of which the tokens count. Raises NotFound; not called
        on the write thread."""
        session = self._stores.sources.session(document)
        if session is None or self._stores.forgotten.hiding(document):
            raise NotFound(f"no session {document!r}", hint="`memd session list` shows the sessions")
        captures = self._stores.archive.turns(document) if given is None else list(given)
        quotes = SessionQuotes(captures)
        pointed, refused = _parted(self._pointed(document, quotes, statement) for statement in statements)
        origin = session.opened.origin
        lessons, refused_learnings = _parted(self._learnt(origin, captures, quotes, one) for one in learnings)
        title = " ".join(title.split())
        refused_title = title if _is_order(title) or self._missing(captures, title) else ""
        said = [captured.event.turn for captured in captures if isinstance(captured.event, Said | Wrote)]
        cost = tokens(msgspec.json.encode((title, statements, open, learnings)).decode())
        event = Reflected(
            turn="",
            at=at,
            reader=reader,
            title="" if refused_title else title,
            statements=_each_once((*pointed, *lessons)),
            upto=said[-1] if said else "",
            tokens=cost,
        )
        self._write(session, lambda: msgspec.structs.replace(event, turn=self._turn(document)), urgent=True)
        what = f"{len(pointed)} of {len(statements)} statements of {reader} taken, about {cost} tokens"
        self._activity.note("reflected", what)
        return Reflection(
            taken=len(_each_once(pointed)),
            refused=refused,
            learnings=sum(len(statement.learnings) for statement in event.statements),
            refused_learnings=refused_learnings,
            refused_title=refused_title,
            tokens=cost,
        )

    def _perspectives(self, origin: Origin) -> tuple[str, ...]:
        """Return the perspectives of the agent that holds a session: where the session names none, an agent may have
        the name of the host."""
        pool = self._stores.sources.pool(agent_pool(origin.agent or origin.host))
        return tuple(map(concern_name, pool.perspectives)) if pool else ()

    def _pointed(self, document: str, quotes: SessionQuotes, statement: Statement) -> Pointed | Reason:
        """Return the places of a statement, or why it is refused."""
        found = quotes.pointed(statement)
        return "hidden" if isinstance(found, Pointed) and self._is_hidden(document, found) else found

    def _learnt(
        self, origin: Origin, captures: Sequence[Captured], quotes: SessionQuotes, learning: ReflectedLearning
    ) -> Pointed | Reason:
        """Return the statement that a learning is about: a lesson, unless the reader names it with another type too."""
        perspective, words = learning.perspective.strip(), " ".join(learning.text.split())
        if perspective not in self._perspectives(origin):
            return "no perspective"
        if not words or _is_order(words) or self._missing(captures, words):
            return "not its words"
        found = self._pointed(origin.document, quotes, Statement(type="lesson", quotes=learning.quotes))
        return msgspec.structs.replace(found, learnings={perspective: words}) if isinstance(found, Pointed) else found

    def _is_hidden(self, document: str, pointed: Pointed) -> bool:
        """Whether a quote has words of a record that the user hid."""
        return any(
            record.status == "hidden" and any(span.start < quote.end and quote.start < span.end for span in spans)
            for quote in pointed.quotes
            for record, spans in stated_spans(self._stores.records, document, quote.turn)
        )

    def _turn(self, document: str) -> str:
        """Return the name of a session's next reflection. Called on the write thread."""
        number = 1
        while self._stores.archive.seq_of(document, f"{REFLECTED}{number}"):
            number += 1
        return f"{REFLECTED}{number}"

    def _write(self, session: SessionEntry, event: Callable[[], AnyEvent], *, urgent: bool) -> None:
        """Capture an event, which is made on the write thread, and tell it."""
        origin = session.opened.origin

        def write() -> None:
            self._stores.take([admit(self._gate, origin, event())])
            documents = {origin.document: not session.closed_at}
            self._captures.publish(CapturesCommitted(documents, urgent=urgent))

        self._writer.run(write).result()


def _parted(answers: Iterable[Pointed | Reason]) -> tuple[list[Pointed], tuple[RefusedStatement, ...]]:
    """Return the statements that were found, and the refusals with their numbers."""
    found: list[Pointed] = []
    refused: list[RefusedStatement] = []
    for number, answer in enumerate(answers):
        if isinstance(answer, Pointed):
            found.append(answer)
        else:
            refused.append(RefusedStatement(number=number, reason=answer))
    return found, tuple(refused)


def _each_once(statements: Iterable[Pointed]) -> tuple[Pointed, ...]:
    """Return each passage once, with what was learnt from it; its first type and its first learnings count."""
    passages: dict[tuple[Pointer, ...], Pointed] = {}
    for statement in statements:
        first = passages.setdefault(statement.quotes, statement)
        learnings = {**statement.learnings, **first.learnings}
        passages[statement.quotes] = msgspec.structs.replace(first, learnings=learnings)
    return tuple(passages.values())


def _is_order(line: str) -> bool:
    """Whether a reader's own words tell an agent what to do."""
    return "injection" in flags_in(line)
