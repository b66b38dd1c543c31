"""Find and redact secrets (W5, P-18). Text outside of secrets stays as it is, byte for byte; spans do not overlap; a
placeholder is never found again. Nothing is compiled before the first use, or `prepare`."""

from __future__ import annotations

import math
import re
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Protocol

import msgspec

from ...protocol import announced_secrets
from .clues import ClueSearch, Places
from .readings import MARKED, Reading, decoded_escapes, decoded_runs, encoded_clues
from .rules import VERSION, SecretRule, read

if TYPE_CHECKING:
    import re2

__all__ = ["VERSION", "SecretSpan", "find", "prepare", "redact"]

# Bytes that the automata of one rule may take at most; RE2 never takes what it does not use.
MEMORY = 256 << 20
NAME = 50  # Bytes of the name that a hit's own name may be the end of: `PUBLIC_` before `KEY`
_NAME = re.compile(rb"[\w.-]+\Z")
_PLACEHOLDER = re.compile(rb"\[redacted:[\w-]{1,60}\]")

LEAST = 12  # Bytes of a secret that is looked for wherever else its text holds it; shorter words stand there by chance
FEW = 64  # Words that are looked for one by one


class SecretLearner(Protocol):
    """Knows secrets that were found before, each with the number of the rule that found it."""

    def learn(self, secrets: Iterable[tuple[str, int]], /) -> None:
        """Know these secrets from now on."""
        ...

    def hits(self, data: bytes, /) -> list[tuple[int, int, int]]:
        """Return start, end and rule's number of each known secret in `data`."""
        ...


class SecretSpan(msgspec.Struct, frozen=True):
    """A secret's place, in characters, and the rule that found it."""

    start: int
    end: int
    rule: str


def redact(text: str, known: SecretLearner | None = None) -> tuple[str, tuple[str, ...]]:
    """`text` with each secret replaced by `[redacted:<rule>]`, and the rules that hit, in order. `known`: secrets to
    look for as well; it learns those found."""
    data = text.encode()
    return _replaced(text, data, _spans(text, data, known))


def find(text: str, known: SecretLearner | None = None) -> tuple[SecretSpan, ...]:
    """Where secrets stand in `text`, in order. `known` as in `redact`."""
    data = text.encode()
    spans = [(start, end, _engine().names[number]) for start, end, number in _spans(text, data, known)]
    if len(data) == len(text):
        return tuple(SecretSpan(*span) for span in spans)
    return tuple(SecretSpan(len(data[:start].decode()), len(data[:end].decode()), rule) for start, end, rule in spans)


def prepare() -> None:
    """Compile what every scan needs, so that the first capture does not wait for it."""
    _engine()


_lock = threading.Lock()
_engines: list[_Engine] = []


def _engine() -> _Engine:
    if not _engines:
        with _lock:  # or two threads would compile it
            if not _engines:
                _engines.append(_Engine(read()))
    return _engines[0]


def _spans(text: str, data: bytes, known: SecretLearner | None) -> list[tuple[int, int, int]]:
    """Start, end and rule's number of each secret, in bytes; where several overlap, the whole of them under the first's
    name."""
    hits = _engine().hits(text, data)
    if not hits:
        return _merged(_apart(known.hits(data), data)) if known else []
    hits = _apart(hits, data)
    merged = _merged(list(hits))
    again = [*_again(data, merged)]
    if known:
        known.learn((data[start:end].decode(errors="ignore"), number) for start, end, number in (*hits, *merged))
        again += known.hits(data)
    return _merged([*merged, *_apart(again, data)])


def _apart(hits: list[tuple[int, int, int]], data: bytes) -> list[tuple[int, int, int]]:
    """Those that overlap no placeholder."""
    if not hits:
        return hits
    taken = [match.span() for match in _PLACEHOLDER.finditer(data)]
    return [hit for hit in hits if not _overlaps(hit[0], hit[1], taken)]


def _replaced(text: str, data: bytes, spans: list[tuple[int, int, int]]) -> tuple[str, tuple[str, ...]]:
    if not spans:
        return text, ()
    names = [_engine().names[number] for _, _, number in spans]
    parts: list[bytes] = []
    at = 0
    for (start, end, _), rule in zip(spans, names, strict=True):
        parts += data[at:start], f"[redacted:{rule}]".encode()
        at = end
    return b"".join((*parts, data[at:])).decode(), tuple(names)


def _again(data: bytes, merged: list[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    """The same words elsewhere in the text, where no rule knows them: without their name, or inside of another word."""
    words = {data[start:end]: number for start, end, number in reversed(merged) if end - start >= LEAST}
    for at, word in _all(list(words), data):
        yield at, at + len(word), words[word]


def _merged(hits: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """In order; those that overlap as one, under the first rule's number."""
    hits.sort(key=lambda hit: (hit[0], -hit[1], hit[2]))
    merged: list[tuple[int, int, int]] = []
    for start, end, number in hits:
        if merged and start < (last := merged[-1])[1]:
            merged[-1] = (last[0], max(last[1], end), min(last[2], number))
        else:
            merged.append((start, end, number))
    return merged


def _overlaps(start: int, end: int, spans: list[tuple[int, int]]) -> bool:
    """Whether one of these spans, which are in order and apart, has a byte between the two."""
    before = bisect_left(spans, (end, 0))
    return before > 0 and spans[before - 1][1] > start


class _Engine:
    """The clues of all rules are looked for together; a rule's own expression is compiled when a clue of it first
    stands in a text, and searched around that place only."""

    def __init__(self, rules: tuple[SecretRule, ...]) -> None:
        import re2  # here, for the daemon's start: 7 ms

        self.rules = rules
        self.names = (*(rule.name for rule in rules), *announced_secrets.KINDS)
        options = re2.Options()
        options.max_mem = MEMORY
        options.log_errors = False
        clues: dict[str, dict[tuple[int, bytes], None]] = {}
        for number, rule in enumerate(rules):
            for word in rule.keywords or ("",):
                clue = rule.probe or re.escape(word) + rule.run
                exact = b"" if word.islower() else word.encode()
                clues.setdefault(clue, {})[number, exact] = None
        self._meant = [tuple(meant) for meant in clues.values()]
        self._announced, self._marked, self._encoded = range(len(clues), len(clues) + 3)
        self._search = ClueSearch(
            (*((clue,) for clue in clues), announced_secrets.probes(), (MARKED,), encoded_clues())
        ).search

        def compiled(pattern: str) -> re2.Regexp:
            return re2.compile(pattern, options)

        self._compiled = cache(compiled)
        announced_secrets.prepare()

    def hits(self, text: str, data: bytes) -> list[tuple[int, int, int]]:
        """Start and end in bytes and rule's number of each secret; they may overlap."""
        clues = self._search(data)
        if not clues:
            return []
        hits = self._as_written(text, data, clues)
        if self._marked in clues or self._encoded in clues:
            hits += self._in_readings(text, data, clues)
        return hits

    def _as_written(self, text: str, data: bytes, clues: Places) -> list[tuple[int, int, int]]:
        hits: list[tuple[int, int, int]] = []
        if self._announced in clues:
            hits += self._after_announcements(text, data, clues[self._announced])
        hits += self._of_rules(data, clues)
        return hits

    def _in_readings(self, text: str, data: bytes, clues: Places) -> Iterator[tuple[int, int, int]]:
        """The secrets that only another reading of the text shows."""
        readings: list[Reading] = []
        if self._marked in clues:
            characters = _CharacterOffsets(data)
            marks = (characters.of_byte(start) for start, _ in sorted(clues[self._marked]))
            readings += decoded_escapes(text, marks)
        if self._encoded in clues:
            readings += decoded_runs(text)
        for reading in readings:
            plain = reading.text.encode(errors="replace")
            for start, end, number in self._as_written(reading.text, plain, self._search(plain)):
                first, last = reading.original(len(plain[:start].decode()), len(plain[:end].decode()))
                if not _PLACEHOLDER.search(plain, max(0, start - 20), end + 20):
                    yield _bytes(text, 0, first), _bytes(text, 0, last), number

    def _of_rules(self, data: bytes, clues: Places) -> Iterator[tuple[int, int, int]]:
        for number, windows in self._windows(data, clues).items():
            for start, end in _joined(windows):
                yield from self._within(data, number, start, min(end, len(data)))

    def _after_announcements(
        self, text: str, data: bytes, places: list[tuple[int, int]]
    ) -> Iterator[tuple[int, int, int]]:
        """The secrets that a name, flag, command or phrase announces."""
        first = len(self.rules)
        characters = _CharacterOffsets(data)
        announcements = announced_secrets.Announcements(text)
        for place in _joined(places):
            start, end = map(characters.of_byte, place)
            begin = place[0]
            for hit in announcements.between(start, end):
                begin += _bytes(
                    text, start, hit.start
                )  # from the hit before it: a table has many, far from its heading
                start = hit.start
                yield begin, begin + _bytes(text, start, hit.end), first + announced_secrets.KINDS.index(hit.kind)

    def _windows(self, data: bytes, clues: Places) -> dict[int, list[tuple[int, int]]]:
        """Where each rule is to be looked for."""
        windows: dict[int, list[tuple[int, int]]] = {}
        for clue, places in clues.items():
            for number, exact in self._meant[clue] if clue < self._announced else ():
                before, reach = self.rules[number].before, self.rules[number].reach
                for start, end in places:
                    if data.startswith(exact, start):
                        windows.setdefault(number, []).append((max(0, start - before), end + reach))
        return windows

    def _within(self, data: bytes, number: int, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """What begins between these two; it may end behind them."""
        rule = self.rules[number]
        pattern = self._compiled(rule.pattern)
        part, at, size = data[start:end], 0, end - start
        while (match := pattern.search(part, at)) and match.start() < size:
            if match.end() == len(part) < len(data) - start:  # it may go on behind what was looked at
                part = data[start : start + 4 * len(part)]
                continue
            first, last = self._secret(match, rule)
            if last > first and self._stands(rule, part, (first, last), match.span()):
                yield start + first, start + last, number
            at = max(last, match.start() + 1)  # what follows a secret may be the edge of the next one

    def _secret(self, match: re2.Match, rule: SecretRule) -> tuple[int, int]:
        if rule.group:
            return match.span(rule.group)
        groups = match.re.groups
        return next((match.span(n) for n in range(1, groups + 1) if match.start(n) >= 0), match.span())

    def _stands(self, rule: SecretRule, data: bytes, secret: tuple[int, int], whole: tuple[int, int]) -> bool:
        """Whether it may be one: as random as its rule asks for, on none of its allow-lists."""
        words = data[slice(*secret)]
        if rule.entropy and entropy(words) < rule.entropy:
            return False
        if any(self._compiled(pattern).search(words) for pattern in rule.allow):
            return False
        if rule.allow_match:
            named = _NAME.search(data[max(0, whole[0] - NAME) : whole[0]])
            around = (named.group() if named else b"") + data[slice(*whole)]
            if any(self._compiled(pattern).search(around) for pattern in rule.allow_match):
                return False
        return not (rule.stop and self._compiled(_any_of(rule.stop)).search(words))


class _CharacterOffsets:
    """The places of bytes in characters, for places in ascending order."""

    def __init__(self, data: bytes) -> None:
        self._data, self._is_ascii = data, data.isascii()
        self._byte = self._character = 0

    def of_byte(self, place: int) -> int:
        """The character that begins at this byte."""
        if self._is_ascii:
            return place
        self._character += len(self._data[self._byte : place].decode()) if place >= self._byte else 0
        self._byte = place
        return self._character


def _bytes(text: str, start: int, end: int) -> int:
    """The bytes from one character to another one, negative backwards."""
    return len(text[start:end].encode()) if end >= start else -len(text[end:start].encode())


@cache
def _any_of(words: tuple[str, ...]) -> str:
    return f"(?i:{'|'.join(map(re.escape, words))})"


def _all(words: Sequence[bytes], data: bytes) -> Iterator[tuple[int, bytes]]:
    """Where these words stand, each of `LEAST` bytes or more: few one by one, many in one pass."""
    if len(words) > FEW:
        known = set(words)
        sizes: dict[bytes, set[int]] = {}
        for word in words:
            sizes.setdefault(word[:LEAST], set()).add(len(word))
        for at in range(len(data) - LEAST + 1):
            for size in sizes.get(data[at : at + LEAST], ()):
                if (word := data[at : at + size]) in known:
                    yield at, word
        return
    for word in words:
        at = data.find(word)
        while at >= 0:
            yield at, word
            at = data.find(word, at + 1)


def _joined(windows: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Those that touch as one, in order."""
    windows.sort()
    start, end = windows[0]
    for first, last in windows[1:]:
        if first > end:
            yield start, end
            start = first
        end = max(end, last)
    yield start, end


def entropy(secret: bytes) -> float:
    """Shannon's, in bits a byte."""
    size = len(secret)
    return -sum(n / size * math.log2(n / size) for n in Counter(secret).values())
