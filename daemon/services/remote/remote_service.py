"""The remote model as a reader of ended sessions (W4): requests about it, and the job that reads while memd is idle.

Invariants: it is off without a choice of the user; the daemon itself never connects, a child process does for one call;
there is at most one call at a time, and none while memd captures, distils or is paused.
"""

from __future__ import annotations

import importlib.util
import logging
import threading
from collections.abc import Callable
from datetime import timedelta

import msgspec

from ....protocol.errors import InvalidRequest, MemdError, NotFound, Stopping
from ....protocol.instant import from_micros, moment
from ....protocol.operation import RemoteConsented
from ....protocol.remote import (
    ConsentRemote,
    ConsentState,
    GetRemote,
    PreviewRemote,
    RemoteCall,
    RemotePreview,
    RemoteState,
    RemoteSummary,
    StopRemote,
    UseRemote,
)
from ...config import Config
from ...projections.remote_calls import CallEntry
from ..core import Core
from ..events import CapturesCommitted
from ..service import Handlers, Service, owner
from ..write_thread import Writer
from .budget import interrupted, local_day
from .call_messages import CallAnswer
from .consent import PRIVATE, ConsentCheck
from .provider import READER, ChoiceFile, RemoteChoice, choice_of
from .reading_queue import ReadingQueue
from .remote_call import KEPT_TEXTS, RemoteCaller, Takes, sent_text

FAILURES = 3
"""Failures in a row after which memd pauses."""

PAUSE_S, LONGEST_PAUSE_S = 60.0, 3600.0
TOO_MANY = 429
PREVIEWED = 50
"""Most bodies of a preview."""

log = logging.getLogger("memd.remote")


class RemoteService(Service):
    """Requests on the slow lane; the job on a thread of the scheduler, a call on one of its own."""

    name = "remote"

    def __init__(
        self, core: Core, writer: Writer, *, take: Takes, distil: Callable[[], None], paused: Callable[[], bool]
    ) -> None:
        """`take`: checks and captures statements; `distil`: wakes the distiller; `paused`: whether memd is paused."""
        self._stores, self._world, self._config = core.stores, core.world, core.config
        self._directory, self._scheduler, self._writer, self._paused = core.directory, core.scheduler, writer, paused
        self._choices = ChoiceFile(core.places.config)
        self._key_path = core.places.remote_key
        self._consents = ConsentCheck(core.stores, core.directory, core.world.now)
        self._queue = ReadingQueue(core.stores, self._consents)
        self._caller = RemoteCaller(
            core.stores,
            writer,
            core.world,
            core.config,
            self._consents,
            self._queue,
            choice=self._choices.read,
            key_file=lambda host: str(core.places.remote_key(host)),
            take=take,
            distil=distil,
        )
        self._one_call = threading.Lock()
        self._captured_at = core.world.monotonic()
        self._failures, self._resume_at, self._problem = 0, 0.0, ""
        core.captures.subscribe(self._captured)

    @property
    def handlers(self) -> Handlers:
        return {
            UseRemote: owner("slow", self.use),
            StopRemote: owner("slow", self.switch_off),
            ConsentRemote: owner("slow", self.consent),
            PreviewRemote: owner("slow", self.preview),
            GetRemote: owner("slow", lambda request: self.state()),
        }

    def start(self) -> None:
        """Settle calls that the last daemon did not end, and look for sessions from now on."""
        self._writer.run(self._settle_interrupted)
        self._scheduler.every(self._config().remote.every_s, self._look, self.name)

    def reload(self, config: Config) -> None:
        self._scheduler.every(config.remote.every_s, self._look, self.name)

    def stop(self) -> None:
        """End the call that runs and wait for its thread; none starts from now on."""
        self._caller.process.end(for_good=True)
        self._one_call.acquire()

    # --- requests ----------------------------------------------------------------------------------------------------
    def use(self, request: UseRemote) -> RemoteState:
        """Choose a remote model. Raises InvalidRequest."""
        choice = choice_of(request.provider, request.model, request.dialect, request.trusted)
        if importlib.util.find_spec("httpx") is None:
            raise InvalidRequest(
                "memd was installed without what it needs to connect", hint="install it again as `memd[remote]`"
            )
        self._choices.write(choice)
        self._failures, self._resume_at, self._problem = 0, 0.0, ""
        return self.state()

    def switch_off(self, request: StopRemote) -> RemoteState:
        """Remove the choice and end the call that runs."""
        self._choices.write(None)
        self._caller.process.end()
        return self.state()

    def consent(self, request: ConsentRemote) -> RemoteState:
        """Give the consent for a pool and the chosen model, or withdraw all of a pool. Raises InvalidRequest without a
        chosen model, NotFound."""
        home = self._stores.aliases.home
        pool = home(self._directory.named(request.pool))
        if request.withdraw:
            held = [consent for consent in self._consented() if home(consent.pool) == pool]
            operations = [msgspec.structs.replace(consent, until="") for consent in held]
        else:
            operations = [self._given(self._chosen(), pool, request)]
        if operations:
            self._writer.run(lambda: self._stores.commit(operations)).result()
        if request.withdraw:
            self._caller.process.end()
        return self.state()

    def _given(self, choice: RemoteChoice, pool: str, request: ConsentRemote) -> RemoteConsented:
        until = moment(self._world.now()) + timedelta(days=request.days)
        return RemoteConsented(
            pool=pool,
            provider=choice.provider,
            url=choice.url,
            family=choice.family,
            until=until.isoformat().replace("+00:00", "Z"),
            private=request.private,
        )

    def preview(self, request: PreviewRemote) -> RemotePreview:
        """Return what would be sent of a session, or was sent in a call. Raises InvalidRequest, NotFound."""
        if bool(request.session) == bool(request.call):
            raise InvalidRequest("name a session or a call", hint="memd remote preview SESSION")
        if request.call:
            return self._sent(request.call)
        choice = self._chosen()
        (document,) = self._stores.sources.documents_named(request.session, source=False)
        session = self._stores.sources.session(document)
        if session is None:
            raise NotFound(f"no session {request.session!r}", hint="`memd session list` shows the sessions")
        parts = [part for _, part in zip(range(PREVIEWED), self._queue.parts(choice, session), strict=False)]
        why = self._consents.check(choice, session).why or ("" if parts else "there is nothing left to send of it")
        texts = tuple(self._caller.bodies(choice, part.text)[0] for part in parts)
        return RemotePreview(document=document, url=choice.url, bodies=texts, state=why)

    def _sent(self, id: str) -> RemotePreview:
        matches = [call for call in self._stores.remote.calls() if call.reserved.id.startswith(id)]
        if len(matches) != 1:
            raise NotFound(f"no single call {id!r}", hint="`memd remote status` lists the calls")
        reserved = matches[0].reserved
        body = sent_text(self._stores, reserved.sent)
        if body is None:
            raise NotFound(
                f"memd no longer has the bytes of {id}", hint=f"it keeps those of {KEPT_TEXTS} calls, without forgotten"
            )
        return RemotePreview(document=reserved.document, url=reserved.reader, bodies=(body,))

    def _chosen(self) -> RemoteChoice:
        choice = self._choices.read()
        if choice is None:
            raise InvalidRequest("no remote model is chosen", hint="memd remote use ollama --model NAME")
        return choice

    # --- the state ---------------------------------------------------------------------------------------------------
    def summary(self) -> RemoteSummary | None:
        """Return the line of `memd status`; None while the remote model is off. Reads a few rows."""
        choice = self._choices.read()
        if choice is None:
            return None
        today = self._stores.remote.day(local_day(self._world.now()))
        cap = self._config().remote.daily_tokens
        return RemoteSummary(
            provider=choice.provider, model=choice.model, today=today, cap=cap, state=self._why_not_now(choice)
        )

    def _why_not_now(self, choice: RemoteChoice) -> str:
        if self._paused():
            return "memd is paused"
        held = (
            self._consents.holds(c) and c.url == choice.url and c.family == choice.family for c in self._consented()
        )
        if not any(held):
            return "no consent: `memd remote consent POOL`"
        left_s = self._resume_at - self._world.monotonic()
        if left_s > 0:
            return f"{self._problem}; memd tries again in {round(left_s / 60) or 1} min"
        return self._problem

    def _consented(self) -> list[RemoteConsented]:
        return self._stores.remote.consents()

    def state(self) -> RemoteState:
        """Return everything about the remote model."""
        choice, calls = self._choices.read(), self._stores.remote.calls()
        listed = tuple(map(self._call, reversed(calls[-KEPT_TEXTS:])))
        if choice is None:
            consents = tuple(self._consent_state(None, consent) for consent in self._consented())
            return RemoteState(consents=consents, calls=listed)
        records = self._stores.records.everything()
        learnt = sum(record.provenance.distiller.startswith(READER) for record in records)
        return RemoteState(
            summary=self.summary(),
            url=choice.url,
            host=choice.host,
            dialect=choice.dialect,
            trusted=choice.trusted,
            has_key=self._key_path(choice.host).exists(),
            learnt=learnt,
            consents=tuple(self._consent_state(choice, consent) for consent in self._consented()),
            calls=listed,
        )

    def _consent_state(self, choice: RemoteChoice | None, consent: RemoteConsented) -> ConsentState:
        state = ConsentState(
            pool=consent.pool,
            provider=consent.provider,
            url=consent.url,
            family=consent.family,
            until=consent.until,
            title=self._directory.title(consent.pool),
            private=consent.private,
        )
        if choice is None or (choice.url, choice.family) != (consent.url, consent.family):
            return state
        sessions = [session for session in self._queue.ended() if consent.pool in self._consents.pools(session)]
        reasons = [(self._consents.check(choice, session).why, session) for session in sessions]
        return msgspec.structs.replace(
            state,
            holds=self._consents.holds(consent),
            waiting=sum(not why and self._queue.is_unread(choice, session) for why, session in reasons),
            private_left=sum(why == PRIVATE for why, _ in reasons),
        )

    def _call(self, call: CallEntry) -> RemoteCall:
        reserved, settled = call.reserved, call.settled
        return RemoteCall(
            id=reserved.id,
            at=call.at,
            reader=reserved.reader,
            document=reserved.document,
            outcome=call.outcome,
            tokens=call.tokens,
            size=settled.size if settled and settled.size else reserved.size,
            pointed=settled.pointed if settled else 0,
            dropped=settled.dropped if settled else 0,
            status=settled.status if settled else 0,
            has_text=sent_text(self._stores, reserved.sent) is not None,
        )

    # --- the job -----------------------------------------------------------------------------------------------------
    def _captured(self, event: CapturesCommitted) -> None:
        self._captured_at = self._world.monotonic()
        self._queue.note(list(event.documents))

    def _is_idle(self) -> bool:
        quiet_s = self._world.monotonic() - self._captured_at
        return quiet_s >= self._config().idle_s and not self._stores.pending and not self._paused()

    def _look(self) -> None:
        """Send one part of a session, if memd is idle and there is one."""
        choice = self._choices.read()
        if choice is None or self._world.monotonic() < self._resume_at or not self._is_idle():
            return
        if not self._one_call.acquire(blocking=False):
            return
        try:
            threading.Thread(target=self._call_once, args=(choice,), name="remote").start()
        except RuntimeError:  # the machine has no thread left
            self._one_call.release()
            raise

    def _call_once(self, choice: RemoteChoice) -> None:
        """Send one part and note what became of it; on a thread of its own, so that the job's does not wait."""
        try:
            self._read_one(choice)
        except Stopping:
            return
        except MemdError as error:
            self._note_failure(error.message, 0.0)
        except Exception as error:
            log.exception("a remote call failed")
            self._note_failure(f"memd failed: {type(error).__name__}", LONGEST_PAUSE_S)
        finally:
            self._one_call.release()

    def _read_one(self, choice: RemoteChoice) -> None:
        following = self._queue.next(choice)
        if following is None:
            return
        result = self._caller.call(choice, following)
        if result.answer is None:
            self._problem = result.withheld if "tokens" in result.withheld else ""
            return
        answer = result.answer
        log.info("remote call ended: outcome=%s status=%d sent=%d", answer.outcome, answer.status, answer.sent)
        if answer.outcome in ("taken", "dropped"):
            self._failures, self._problem = 0, ""
        elif self._choices.read() == choice:
            self._note_answer(answer)

    def _note_answer(self, answer: CallAnswer) -> None:
        wait_s = max(answer.retry_s, PAUSE_S) if answer.retry_s or answer.status == TOO_MANY else 0.0
        self._note_failure(answer.problem or answer.outcome, wait_s)

    def _note_failure(self, problem: str, wait_s: float) -> None:
        """Count a failure; pause after several in a row, or as long as the server asks for."""
        self._failures, self._problem = self._failures + 1, problem
        if self._failures >= FAILURES:
            wait_s = max(wait_s, PAUSE_S * 2 ** min(self._failures - FAILURES, 6))
        self._resume_at = self._world.monotonic() + min(wait_s, LONGEST_PAUSE_S)

    def _settle_interrupted(self) -> None:
        if calls := self._stores.remote.open_calls():
            self._stores.commit([interrupted(call.reserved) for call in calls])
            log.info(
                "settled calls that a stop interrupted: calls=%d at=%s", len(calls), from_micros(self._world.now())
            )
