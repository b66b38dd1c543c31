"""One call of a remote model, step by step (W4): archive the bytes, reserve the tokens, send, take, settle.

Invariants: consent, cap and every turn are checked on the write thread in the step that reserves; the reservation is on
the disk before the child is told to send; what the answer says passes the check of quotes against the turns that
were sent; a call without a known outcome keeps its reservation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import NamedTuple, Protocol

import msgspec

from ....protocol.errors import NotFound, StorageFull
from ....protocol.event import Captured, SentPart
from ....protocol.operation import RemoteReserved, RemoteSettled
from ....protocol.reflection import Reflection, Statement
from ...config import Config
from ...failpoint import reach
from ...projections.stores import Stores
from ...storage.archive import decode
from ...world import World
from ..write_thread import Writer
from .budget import local_day, most_tokens, used
from .call_messages import CallAnswer, RemoteTask
from .call_process import CallProcess
from .consent import ConsentCheck
from .dialects import bodies, statements_of
from .outgoing import SessionPart
from .provider import RemoteChoice
from .reading_queue import NextPart, ReadingQueue

KEPT_TEXTS = 50
"""Newest calls whose bytes stay in the archive."""

ERASED_AT_ONCE = 20


class Takes(Protocol):
    """Captures the statements of a reader whose quotes the session has (`ReflectionService.take`)."""

    def __call__(
        self, document: str, reader: str, at: str, statements: Sequence[Statement], *, given: Sequence[Captured]
    ) -> Reflection: ...


class CallResult(NamedTuple):
    """What became of a call: the answer, or `withheld`, why nothing was sent."""

    answer: CallAnswer | None = None
    withheld: str = ""


class RemoteCaller:
    """Makes calls; the caller sees to it that there is one at a time."""

    def __init__(
        self,
        stores: Stores,
        writer: Writer,
        world: World,
        config: Callable[[], Config],
        consents: ConsentCheck,
        queue: ReadingQueue,
        *,
        choice: Callable[[], RemoteChoice | None],
        key_file: Callable[[str], str],
        take: Takes,
        distil: Callable[[], None],
    ) -> None:
        """`choice`: the model that is chosen now; `key_file`: the file with the key for a host; `distil` wakes the
        distiller, which passes over what was sent."""
        self._stores, self._writer, self._world, self._config = stores, writer, world, config
        self._consents, self._queue, self._choice, self._key_file = consents, queue, choice, key_file
        self._take, self._distil = take, distil
        self._plain: RemoteChoice | None = None  # the last model that took the plain form alone
        self.process = CallProcess()

    def bodies(self, choice: RemoteChoice, session: str) -> tuple[str, ...]:
        """Return the body of a call, and the one that memd sends if the server refuses the first one's form."""
        forms = bodies(choice, session)
        return forms[-1:] if choice == self._plain else forms

    def call(self, choice: RemoteChoice, following: NextPart) -> CallResult:
        """Send one part of a session and take the answer; if the server refuses the form, once more in another call."""
        first, *other = self.bodies(choice, following.part.text)
        result = self._send(choice, following, first)
        if not other or result.answer is None or result.answer.status != HTTPStatus.BAD_REQUEST:
            return result
        result = self._send(choice, following, other[0])
        if result.answer is not None and result.answer.status == HTTPStatus.OK:
            self._plain = choice
        return result

    def _send(self, choice: RemoteChoice, following: NextPart, body: str) -> CallResult:
        rules = self._config().remote
        reserved = self._writer.run(lambda: self._reserve(choice, following, body)).result()
        if isinstance(reserved, str):
            return CallResult(withheld=reserved)
        self._distil()
        task = RemoteTask(
            url=choice.url,
            dialect=choice.dialect,
            body=body,
            key_file=self._key_file(choice.host),
            ca_file=rules.ca_file,
            deadline_s=rules.deadline_s,
        )
        answer = self.process.call(task, lambda: self._withheld(choice, following))
        reach("remote:answered")
        answer, reflection, invalid = self._taken(choice, following, answer)
        settled = RemoteSettled(
            id=reserved.id,
            outcome=answer.outcome,
            tokens=used(reserved, body, answer),
            size=answer.sent,
            pointed=reflection.taken,
            dropped=len(reflection.refused) + invalid,
            status=answer.status,
        )
        self._writer.run(lambda: self._stores.commit([settled])).result()
        reach("remote:settled")
        self._writer.run(lambda: erase_old_texts(self._stores)).result()
        return CallResult(answer)

    def _taken(
        self, choice: RemoteChoice, following: NextPart, answer: CallAnswer
    ) -> tuple[CallAnswer, Reflection, int]:
        """Take the statements of an answer; return the outcome, what was taken, and the number of invalid parts."""
        nothing = Reflection(taken=0)
        if answer.outcome != "taken":
            return answer, nothing, 0
        if not self._allows(choice, following):
            return msgspec.structs.replace(answer, outcome="dropped", problem="consent ended meanwhile"), nothing, 0
        read = statements_of(answer.content)
        statements, invalid = read if read is not None else ([], 0)
        part = following.part
        statements = [_shown(part, statement) for statement in statements]
        at = part.given[-1].event.at
        try:
            reflection = self._take(following.document, choice.reader, at, statements, given=part.given)
        except (NotFound, StorageFull) as error:
            return msgspec.structs.replace(answer, outcome="unknown", problem=error.message), nothing, 0
        reach("remote:taken")
        if read is None:
            return msgspec.structs.replace(answer, outcome="dropped", problem="the answer is no list"), reflection, 0
        return answer, reflection, invalid

    def _allows(self, choice: RemoteChoice, following: NextPart) -> bool:
        session = self._stores.sources.session(following.document)
        return self._choice() == choice and session is not None and bool(self._consents.check(choice, session))

    def _withheld(self, choice: RemoteChoice, following: NextPart) -> str:
        """Return why a part may not be sent now, "" if it may."""
        if not self._allows(choice, following):
            return "consent ended meanwhile"
        for captured, words in zip(following.part.given, following.part.shown, strict=True):
            if self._stores.archive.turn(following.document, captured.event.turn) != captured:
                return "a turn was changed or forgotten meanwhile"
            if self._queue.shown(captured) != words:
                return "a record was hidden meanwhile"
        return ""

    # --- on the write thread -----------------------------------------------------------------------------------
    def _reserve(self, choice: RemoteChoice, following: NextPart, body: str) -> RemoteReserved | str:
        """Return the reservation once it is on the disk, or why nothing may be sent."""
        cap = self._config().remote.daily_tokens
        if why := self._withheld(choice, following):
            return why
        day, tokens = local_day(self._world.now()), most_tokens(body)
        if self._stores.remote.day(day).tokens + tokens > cap:
            return f"today's {cap:,} tokens do not suffice"
        id = self._world.token(8).hex()
        reserved = RemoteReserved(
            id=id,
            day=day,
            tokens=tokens,
            reader=choice.reader,
            document=following.document,
            sent=self._archived(choice, following, body, id),
            upto=following.part.upto,
            size=len(body.encode()),
        )
        self._stores.commit([reserved])
        reach("remote:reserved")
        return reserved

    def _archived(self, choice: RemoteChoice, following: NextPart, body: str, id: str) -> int:
        """Store the bytes of a call in the session's document, unless an earlier try did; return their seq."""
        document, given = following.document, following.part.given
        for seq, captured in reversed(self._stores.archive.numbered(document)):
            if isinstance(captured.event, SentPart) and captured.event.text == body:
                return seq
        turns = tuple(captured.event.turn for captured in given)
        event = SentPart(turn=f"sent-{id}", at=given[-1].event.at, reader=choice.reader, text=body, turns=turns)
        live = following.session.opened.origin.live
        self._stores.take([Captured(document=document, event=event, live=live)])
        reach("remote:archived")
        return self._stores.archive.seq_of(document, event.turn)


def erase_old_texts(stores: Stores) -> None:
    """Remove the bytes of all but the newest calls. On the write thread."""
    calls = stores.remote.calls()
    kept = {call.reserved.sent for call in calls[-KEPT_TEXTS:]}
    older = {call.reserved.sent for call in calls[:-KEPT_TEXTS][-ERASED_AT_ONCE:]} - kept
    distilled = stores.sources.progress().archive_seq
    if seqs := [seq for seq in sorted(older) if seq <= distilled and sent_text(stores, seq) is not None]:
        stores.archive.expire(seqs)


def sent_text(stores: Stores, seq: int) -> str | None:
    """Return the bytes of a call by their archive seq, None if they are gone."""
    entry = stores.archive.log.get(seq)
    captured = decode(entry) if entry else None
    return captured.event.text if captured and isinstance(captured.event, SentPart) else None


def _shown(part: SessionPart, statement: Statement) -> Statement:
    """Return a statement with words in place of the pseudonyms."""
    if part.pseudonyms is None:
        return statement
    return msgspec.structs.replace(statement, quotes=tuple(map(part.pseudonyms.show, statement.quotes)))
