"""What memd uses of hyperscan: a database of expressions over bytes, scanned in one block."""

from collections.abc import Callable, Sequence
from typing import TypeVar

HS_FLAG_CASELESS: int
HS_FLAG_SINGLEMATCH: int
HS_FLAG_SOM_LEFTMOST: int
HS_FLAG_UTF8: int

_Context = TypeVar("_Context")

class Scratch:
    def __init__(self, database: Database) -> None: ...

class Database:
    def compile(
        self, expressions: Sequence[bytes], ids: Sequence[int], elements: int, flags: Sequence[int]
    ) -> None: ...
    def scan(
        self,
        data: bytes,
        match_event_handler: Callable[[int, int, int, int, _Context], bool | None],
        flags: int,
        context: _Context,
        scratch: Scratch,
    ) -> None: ...
