"""Sentences of real sessions, labelled by hand as models/recipes/LABELS.md says, to measure the local models with.

The texts are others' and lie outside of the repository: data/real_labels.txt names each by its file, its line and the
first 16 hex digits of its SHA-1, and the sessions in ../shared/data are cut again to find it.
"""
# pyright: strict

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

LABELS = Path(__file__).resolve().parents[1] / "data" / "real_labels.txt"
SESSIONS = Path(__file__).resolve().parents[3] / "shared" / "data" / "sessions"

_ITEM = re.compile(r"\s*(?:>\s*)?(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_NO_PROSE = re.compile(r"\s*#{1,6}\s|\s*\||\s*\*\*[^*]+\*\*:?\s*$|\s*\{\"|\s{4,}(?![-*+•]\s|\d+[.)]\s)|[^\w]*$")
_CODE = re.compile(r"(`+)[^`]+\1")
_END = re.compile(r"[.!?…]+[)\"'”’*_\]]*(?=\s)")
_SHORTENED = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|resp|approx|no)|^\W*\d{1,3})\.$", re.IGNORECASE)
_MACHINE = re.compile(r"\s*(?:\[Request interrupted|<(?:task-notification|local-command|command-name>/mcp))")
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)


class _Block(msgspec.Struct, frozen=True):
    type: str = ""
    text: str | None = None


class _Message(msgspec.Struct, frozen=True):
    role: str = ""
    content: str | list[_Block] = ""
    parts: list[_Block] = []


class _Answer(msgspec.Struct, frozen=True):
    content: _Message = _Message()
    candidates: list[_Answer] = []


class _Line(msgspec.Struct, frozen=True, rename="camel"):
    message: _Message | None = None
    response: list[_Answer] = []
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_sidechain: bool | None = None


@dataclass(frozen=True, slots=True)
class LabelledSentence:
    """A sentence as it was said, what was said just before it in its session ("" for nothing), and its labels."""

    speaker: str
    text: str
    previous: str
    type: str
    modality: str
    salience: int
    drawn: str


def fingerprint(text: str) -> str:
    """What the file of labels knows a sentence by."""
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:16]


def split(text: str) -> list[str]:
    """The sentences and list items of `text`; code blocks, tables and headings left out."""
    found: list[str] = []
    fenced = False
    for line in text.splitlines():
        fenced ^= bool(opened := _FENCE.match(line))
        if not fenced and not opened and not _NO_PROSE.match(line):
            mark = _ITEM.match(line)
            found += _sentences(line[mark.end() if mark else 0 :].strip())
    return [sentence for sentence in found if re.search(r"\w", sentence)]


def _sentences(line: str) -> list[str]:
    code = [match.span() for match in _CODE.finditer(line)]
    ends = [match.end() for match in _END.finditer(line) if not any(a < match.start() < b for a, b in code)]
    ends = [end for end in ends if not _SHORTENED.search(head := line[:end]) and head.count("(") <= head.count(")")]
    return [line[a:b].strip() for a, b in zip([0, *ends], [*ends, len(line)], strict=True)]


def said(line: bytes) -> tuple[str, list[str]]:
    """Who wrote a line of a session, and their sentences; none where a machine or a tool wrote it."""
    it = msgspec.json.decode(line, type=_Line)
    parts = [part.text or "" for each in it.response for one in each.candidates for part in one.content.parts]
    speaker, text = "assistant", "".join(parts)
    if it.message and it.message.role in {"user", "assistant"} and not (it.is_meta or it.is_compact_summary):
        blocks = [_Block("text", content)] if isinstance(content := it.message.content, str) else content
        speaker, text = it.message.role, "\n".join(each.text or "" for each in blocks if each.type == "text")
    if speaker == "user":
        typed = _ARGUMENTS.search(text)
        text = "" if it.is_sidechain or _MACHINE.match(text) else typed[1] if typed else text
    return speaker, split(text)


def real_sentences() -> list[LabelledSentence]:
    """Every labelled sentence, in the order of the file. Raises LookupError where a text is not what was labelled."""
    files: dict[str, list[tuple[str, list[str]]]] = {}
    found: list[LabelledSentence] = []
    for row in LABELS.read_text(encoding="utf-8").splitlines():
        name, line, sha, kind, modality, salience, drawn = row.split(" | ")
        if name not in files:
            files[name] = [said(each) for each in (SESSIONS / name).read_bytes().splitlines()]
        *earlier, (speaker, sentences) = files[name][: int(line)]
        at = next((n for n, sentence in enumerate(sentences) if fingerprint(sentence) == sha), None)
        if at is None:
            raise LookupError(f"{name}:{line} holds no sentence {sha}: other session files, or another splitter?")
        before = ["", *(sentence for _, each in earlier for sentence in each), *sentences[:at]]
        found.append(LabelledSentence(speaker, sentences[at], before[-1], kind, modality, int(salience), drawn))
    return found
