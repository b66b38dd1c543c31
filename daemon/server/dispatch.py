"""The dispatch table: each request type has one handler of one service; before it runs, the caller is authorised and
every text of the request passes the gate. A capture passes it in its service, as those of a spool do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ...protocol.errors import MemdError
from ...protocol.reply import AnyData
from ...protocol.request import AnyRequest, Capture, Remember
from ...protocol.request_fields import Request
from ...protocol.secret_gate import SecretGate
from ..services.access.authorisation import Authorisation
from ..services.admission import bug
from ..services.service import Caller, CaptureHandler, CaptureRequest, Handler, Lane, Respond, Service
from ..services.write_thread import Writer

Arrived = Sequence[tuple[AnyRequest, Respond]]


def table_of(services: Sequence[Service]) -> dict[type[Request], Handler | CaptureHandler]:
    """Return the handler of each request type. Raises ValueError where two services declare the same type."""
    table: dict[type[Request], Handler | CaptureHandler] = {}
    for service in services:
        for request_type, handler in service.handlers.items():
            if request_type in table:
                raise ValueError(f"{request_type.__name__} has a second handler, in {service.name}")
            table[request_type] = handler
    return table


class Dispatcher:
    """Finds the lane of a request, authorises its caller, removes its secrets, and calls its handler."""

    def __init__(
        self, services: Sequence[Service], authoriser: Authorisation, writer: Writer, gate: SecretGate
    ) -> None:
        self._table = table_of(services)
        self._authoriser, self._writer = authoriser, writer
        self._gate, self._pass_gate = gate, gate.without_memory()

    def lane(self, request: AnyRequest) -> Lane:
        """Return the lane that answers a request."""
        handler = self._table[type(request)]
        if isinstance(handler, CaptureHandler):
            return "write"
        return handler.lane(request) if callable(handler.lane) else handler.lane

    def patience(self, request: AnyRequest) -> tuple[Callable[[], bool], float] | None:
        """Return what tells whether a request that waits is ready, and the seconds that it waits; None for a request to
        answer now."""
        handler = self._table[type(request)]
        is_ready = handler.is_ready if isinstance(handler, Handler) else None
        wait_ms = getattr(request, "wait_ms", 0)
        if is_ready is None or request.token or not wait_ms or is_ready(request):
            return None
        return lambda: is_ready(request), wait_ms / 1000

    def answer(self, request: AnyRequest) -> AnyData:
        """Answer a request of the fast or the slow lane. Raises MemdError."""
        handler = self._table[type(request)]
        assert isinstance(handler, Handler)
        request = self._cleaned(request)
        return handler.function(request, self._authoriser.caller(request, handler))

    def write(self, arrived: Arrived) -> None:
        """Queue requests of the write lane that arrived together; each is answered once, from the write thread."""
        captures: list[tuple[CaptureRequest, Respond]] = []
        others: list[tuple[partial[AnyData], Respond]] = []
        take = None
        for request, respond in arrived:
            try:
                handler = self._table[type(request)]
                caller = self._authoriser.caller(request, handler)
            except MemdError as error:
                respond(error)
                continue
            if isinstance(handler, Handler):
                others.append((partial(self._written, handler, request, caller), respond))
            elif isinstance(request, Capture | Remember):
                take = handler.take
                captures.append((request, respond))
        if take:
            take(captures)
        for work, respond in others:
            self._run(work, respond)

    def _written(self, handler: Handler, request: AnyRequest, caller: Caller) -> AnyData:
        return handler.function(self._cleaned(request), caller)

    def _cleaned(self, request: AnyRequest) -> AnyRequest:
        """Return a request without secrets. The holder of a pass teaches memd no secret, and learns of none."""
        gate = self._pass_gate if request.token else self._gate.of(getattr(request, "document", ""))
        return gate.request(request)

    def _run(self, work: partial[AnyData], respond: Respond) -> None:
        future = self._writer.run(work)

        def done() -> None:
            error = future.exception()
            respond(future.result() if error is None else error if isinstance(error, MemdError) else bug(error))

        future.add_done_callback(lambda _: done())
