"""Split a text into word pieces. Ids begin with [CLS] and end with [SEP], at most `limit` of them, never padded (the
tokenizer's file asks for 128 places). No string fails."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from tokenizers import Encoding

MAX_CHARACTERS = 8192  # Far more than 256 tokens need in any script, and 10 ms of work at most


class _Tokenizer(Protocol):
    """The part of `tokenizers.Tokenizer` used here; its own stubs leave types open."""

    def no_padding(self) -> None: ...
    def enable_truncation(self, max_length: int) -> None: ...
    def encode(self, sequence: str) -> Encoding: ...
    def get_vocab_size(self) -> int: ...


@cache
def _loaded(path: Path, changed_ns: int, limit: int) -> _Tokenizer:
    """Load a tokenizer once for all networks of a process; any thread may use it."""
    from tokenizers import Tokenizer

    tokenizer = cast("_Tokenizer", Tokenizer.from_file(str(path)))
    tokenizer.no_padding()
    tokenizer.enable_truncation(limit)
    return tokenizer


class WordPieces:
    """The tokenizer in `path`; texts are cut after `limit` tokens, counting [CLS] and [SEP]."""

    def __init__(self, path: Path, limit: int) -> None:
        self._tokenizer = _loaded(path, path.stat().st_mtime_ns, limit)

    @property
    def pieces(self) -> int:
        """How many word pieces there are: every id is below it."""
        return self._tokenizer.get_vocab_size()

    def encode(self, text: str) -> Encoding:
        """Ids and character offsets. Lone surrogates count as question marks: they can't be written as UTF-8."""
        text = text[:MAX_CHARACTERS]
        try:
            return self._tokenizer.encode(text)
        except TypeError:
            return self._tokenizer.encode(text.encode("utf-8", "replace").decode("utf-8"))

    def ids(self, text: str) -> list[int]:
        """Token ids of `text`, [CLS] first and [SEP] last."""
        return self.encode(text).ids

    def windows(self, text: str) -> list[list[int]]:
        """Token ids of the first `MAX_CHARACTERS` of `text`, `limit` at a time, each as `ids` gives them."""
        first = self.encode(text)
        return [first.ids, *(more.ids for more in first.overflowing)]

    def count(self, text: str) -> int:
        """How many word pieces `text` is, however long, without [CLS] and [SEP]."""
        return sum(len(ids) - 2 for ids in self.windows(text))
