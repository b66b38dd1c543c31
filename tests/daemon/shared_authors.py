"""Authors of partitions, as another home would write them, honest or not."""

from __future__ import annotations

from random import Random
from typing import Any

from memd.daemon.services.sharing.partition_key import PartitionKey
from memd.protocol.share import SegmentData
from memd.protocol.shared_lines import (
    SEGMENT,
    AddLine,
    AnySharedLine,
    GoneLine,
    InvLine,
    ShareHead,
    ShareMark,
    encode_shared,
    line_hash,
    line_name,
    segment_hash,
    tip_of,
)

MARK = ShareMark(root="f" * 40, remote="example.org/orchard/app")
AT = 1_790_000_000_000_000


class Author:
    """One author on one device."""

    def __init__(self, seed: int, name: str = "", mark: ShareMark = MARK) -> None:
        self._random = Random(seed)
        self.key = PartitionKey.of(self._random.randbytes(32))
        self.partition = self.key.partition
        self.name, self.mark = name or f"author {seed}", mark
        self.lines: list[bytes] = []
        self.epoch, self.lamport = 0, 0

    def _fields(self, more: dict[str, Any]) -> dict[str, Any]:
        self.lamport = more.pop("l", self.lamport + 1)
        blind = self._random.randbytes(16).hex()
        return {"n": len(self.lines), "l": self.lamport, "at": AT + len(self.lines), "b": blind, **more}

    def add(self, text: str, **more: Any) -> str:
        """Append a line that shares a statement, and return its name."""
        return self._append(AddLine(**self._fields({"kind": "note", "text": text, "said": "2026-11-20", **more})))

    def invalidate(self, ref: str, **more: Any) -> str:
        """Append a line that invalidates another one."""
        return self._append(InvLine(**self._fields({"id": ref, **more})))

    def append_raw(self, raw: bytes) -> None:
        """Append bytes as they are."""
        self.lines.append(raw)

    def _append(self, line: AnySharedLine) -> str:
        assert isinstance(line, AddLine | InvLine)
        self.lines.append(encode_shared(line))
        return line_name(self.partition, len(self.lines) - 1)

    def forget(self, number: int) -> None:
        """Replace a line by its hash, in a new epoch."""
        self.lines[number] = encode_shared(GoneLine(gone=line_hash(self.lines[number]).hex()))
        self.epoch += 1

    def hashes(self) -> tuple[bytes, ...]:
        """The hashes of the segments."""
        return tuple(
            segment_hash(map(line_hash, self.lines[start : start + SEGMENT]))
            for start in range(0, len(self.lines), SEGMENT)
        )

    def segments(self, first: int = 0) -> tuple[SegmentData, ...]:
        """The segments from a number on."""
        return tuple(
            SegmentData(start // SEGMENT, b"".join(line + b"\n" for line in self.lines[start : start + SEGMENT]))
            for start in range(first * SEGMENT, len(self.lines), SEGMENT)
        )

    def head(self, **more: Any) -> bytes:
        """The signed head."""
        fields = {
            "share": self.mark,
            "partition": self.partition,
            "key": self.key.public.hex(),
            "name": self.name,
            "epoch": self.epoch,
            "count": len(self.lines),
            "tip": tip_of(self.hashes()),
            "lamport": self.lamport,
            "at": AT,
            **more,
        }
        return self.key.signed(ShareHead(**fields))
