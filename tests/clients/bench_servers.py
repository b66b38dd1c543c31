"""Small servers that speak the protocol and keep sentences in a file: an honest one, and three that are broken each in
its own way. The benchmark must tell them apart.

Run as `python bench_servers.py KIND`, in place of the daemon: with MEMD_HOME set.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec
import zmq

from memd.protocol import reply, request, wire
from memd.protocol.errors import Forgotten, MemdError, NotFound, UnknownRequest
from memd.protocol.event import Noted, Said
from memd.protocol.places import places
from memd.protocol.record import Provenance, Record, Span

LOSES_EVERY = 4


class Server:
    """What it knows lies in one file of JSON lines, a line a sentence; a line is taken out when it is forgotten."""

    def __init__(self, kind: str, file: Path) -> None:
        self._kind, self._file = kind, file
        self._gone: set[str] = set()
        self._count = 0
        self._known: dict[str, Record] = {}
        for line in file.read_text().splitlines() if file.exists() else []:
            record = msgspec.json.decode(line, type=Record)
            self._known[record.id] = record

    def _save(self) -> None:
        self._file.write_text("".join(msgspec.json.encode(each).decode() + "\n" for each in self._known.values()))

    def _keep(self, document: str, turn: str, text: str, at: str) -> Record:
        id = f"{document}-{turn}".replace(":", "-")
        if id in self._gone:
            raise Forgotten("it was forgotten")
        span = Span(document, turn, 0, len(text))
        told = Provenance(author="user", source=document, trust="user", spans=(span,), quote=text, said_at=at)
        record = Record(id=id, pool="personal", kind="note", content=text, description=text, provenance=told)
        self._count += 1
        if self._kind != "lossy" or self._count % LOSES_EVERY:
            self._known[id] = record
            self._save()
        return record

    def _forget(self, wish: request.Forget) -> None:
        if self._kind == "hoarding":
            return  # it says that it is done, and keeps everything
        for id, record in list(self._known.items()):
            if (
                id in wish.ids
                or (wish.query and wish.query in record.content)
                or wish.session == record.provenance.source
            ):
                del self._known[id]
                self._gone.add(id)
        self._save()

    def _ranked(self, query: str) -> list[Record]:
        asked = set(re.findall(r"\w+", query.lower()))
        scores = {id: len(asked & set(re.findall(r"\w+", each.content.lower()))) for id, each in self._known.items()}
        order = sorted(scores, key=lambda id: (scores[id], id), reverse=self._kind != "misranking")
        return [self._known[id] for id in order]

    def answer(self, wish: request.AnyRequest) -> Any:
        """The data of the answer. Raises a MemdError."""
        match wish:
            case request.GetStatus():
                return status(len(self._known))
            case request.Remember():
                return reply.Remembered(record=self._keep(wish.origin.document, wish.turn, wish.text, wish.at))
            case request.Capture():
                return self._taken(wish)
            case request.Recall():
                hits = tuple(reply.Hit(record=each, score=0.5) for each in self._ranked(wish.query)[: wish.limit])
                return reply.Recalled(hits=hits, scope=("personal",))
            case request.List():
                return reply.Page(records=tuple(self._known.values()), total=len(self._known))
            case request.Get():
                if wish.id not in self._known:
                    raise NotFound("there is no such record")
                return self._known[wish.id]
            case request.Forget():
                self._forget(wish)
                return reply.JobState(id="1", name="forget", state="done")
            case request.Rebuild():
                return reply.JobState(id="1", name="rebuild", state="done")
            case request.Distil() | request.Stop():
                return reply.Done(pending=0)
            case _:
                raise UnknownRequest(type(wish).__name__)

    def _taken(self, wish: request.Capture) -> reply.Taken:
        accepted = forgotten = 0
        for each in wish.events:
            if isinstance(each, Said | Noted):
                try:
                    self._keep(wish.origin.document, each.turn, each.text, each.at)
                    accepted += 1
                except Forgotten:
                    forgotten += 1
        return reply.Taken(
            accepted=accepted, duplicate=0, changed=0, refused=(), pool="personal", pending=0, forgotten=forgotten
        )


def status(records: int) -> reply.StatusText:
    """A status of such a server."""
    return reply.StatusText(
        version="0", protocol=1, pid=os.getpid(), started_at="", data_dir="", model="", journal_seq=0, archive_seq=0,
        pending=0, worker="idle", records={"active": records}, pools=1, last={}, failures=(), size_bytes={},
    )  # fmt: skip


def main(kind: str) -> None:
    """Answers until it is told to stop."""
    home = places(os.environ, os.getuid())
    home.data.mkdir(parents=True, exist_ok=True)
    home.socket.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    server = Server(kind, home.data / "known.jsonl")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    router = zmq.Context().socket(zmq.ROUTER)
    router.linger = 500
    router.bind(f"ipc://{home.socket}")
    while True:
        identity, body = router.recv_multipart()
        wish = wire.decode_request(body)
        try:
            told = wire.encode_data(server.answer(wish), wish.rid, "msgpack")
        except MemdError as error:
            told = wire.encode_error(error, wish.rid, "msgpack")
        router.send_multipart([identity, told])
        if isinstance(wish, request.Stop):
            router.close()
            return


if __name__ == "__main__":
    main(sys.argv[1])
