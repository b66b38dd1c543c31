"""Takes what other readers found in a session (W4): the agent that was there, or a model that the user configured.

Invariants: nothing is kept but places in the archive, the title and the open items; whatever a reader says passes the
same check and then the same stages as the statements of memd's own model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....protocol.errors import InvalidRequest, NotFound
from ....protocol.event import Captured, Pointed, Reflected, Said
from ....protocol.reflection import Reflect, Reflection, RefusedStatement, Statement
from ....protocol.session import HandOver, HandoverTaken
from ..admission import admit
from ..core import Core
from ..events import CapturesCommitted
from ..service import Handlers, Service, owner
from ..write_thread import Writer
from .quotes import SessionQuotes

AGENT = "agent"
"""Prefix of the name of a reader that is the agent of the session; its host follows."""


class ReflectionService(Service):
    """Finds the quotes on the slow lane, and captures on the write thread."""

    name = "reflection"

    def __init__(self, core: Core, writer: Writer, hand_over: Callable[[HandOver], HandoverTaken]) -> None:
        """`hand_over`: checks and keeps the open items; called on the write thread."""
        self._stores, self._gate, self._token = core.stores, core.gate, core.world.token
        self._captures, self._writer, self._hand_over = core.captures, writer, hand_over

    @property
    def handlers(self) -> Handlers:
        return {Reflect: owner("slow", self.reflect)}

    def reflect(self, request: Reflect) -> Reflection:
        """Take what the agent of a session found in it. Raises NotFound, InvalidRequest."""
        if not (request.statements or request.open or request.title.strip()):
            raise InvalidRequest("the reflection is empty", hint="name statements with their quotes, or a title")
        session = self._stores.sources.session(request.document)
        if session is None:
            raise NotFound(f"no session {request.document!r}", hint="`memd session list` shows the sessions")
        reader = f"{AGENT}:{session.opened.origin.host}"
        reflection = self.take(request.document, reader, request.at, request.statements, title=request.title)
        if not request.open:
            return reflection
        handed = HandOver(document=request.document, at=request.at, open=request.open)
        lines = self._writer.run(lambda: self._hand_over(handed)).result().lines
        refused = tuple(line.text for line in lines if line.state == "refused")
        return Reflection(
            taken=reflection.taken,
            refused=reflection.refused,
            open=len(lines) - len(refused),
            refused_open=refused,
        )

    def take(
        self,
        document: str,
        reader: str,
        at: str,
        statements: Sequence[Statement],
        *,
        title: str = "",
        given: Sequence[Captured] | None = None,
    ) -> Reflection:
        """Capture the statements of a reader whose quotes the session has. `given`: the only captures that the reader
        was given, None for all. Raises NotFound; not called on the write thread."""
        session = self._stores.sources.session(document)
        if session is None or self._stores.forgotten.hiding(document):
            raise NotFound(f"no session {document!r}", hint="`memd session list` shows the sessions")
        captures = self._stores.archive.turns(document) if given is None else list(given)
        quotes = SessionQuotes(captures)
        refused: list[RefusedStatement] = []
        pointed: list[Pointed] = []
        for number, statement in enumerate(statements):
            answer = quotes.pointed(statement)
            if isinstance(answer, Pointed):
                pointed.append(answer)
            else:
                refused.append(RefusedStatement(number=number, reason=answer))
        said = [captured.event.turn for captured in captures if isinstance(captured.event, Said)]
        event = Reflected(
            turn=f"reflected-{self._token(4).hex()}",
            at=at,
            reader=reader,
            title=" ".join(title.split()),
            statements=tuple(dict.fromkeys(pointed)),
            upto=said[-1] if said else "",
        )
        captured = admit(self._gate, session.opened.origin, event)
        self._writer.run(lambda: self._stores.take([captured])).result()
        self._writer.run(
            lambda: self._captures.publish(CapturesCommitted({document: not session.closed_at}, urgent=True))
        ).result()
        return Reflection(taken=len(event.statements), refused=tuple(refused))
