"""Sessions of coding agents, cut into clauses and short pieces of output: benign texts for the injection head.

The files are others' and lie outside of the repository; `MODEL_CARD.md` names them. Claude Code, Codex and pi write a
JSON object a line, with the message in it or in its `payload`.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from labelled import PLACES

LONGEST = 400  # Characters of a piece of a tool's output, but for a longer line
LINE = 600  # Characters that are read of a line of output


def pieces(folder: Path) -> list[tuple[str, int, int]]:
    """(text, place, 0) of each different piece of the sessions in `folder`, in the order of their files."""
    texts: dict[tuple[str, int, int], None] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for role, text in _messages(path):
            place = _place(role)
            texts.update(dict.fromkeys((piece, PLACES.index(place), 0) for piece in _cut(text, place)))
    return list(texts)


def _messages(path: Path) -> Iterator[tuple[str, str]]:
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and not entry.get("isMeta"):
            yield from _blocks(entry)


def _blocks(entry: dict) -> Iterator[tuple[str, str]]:
    """(role, text) of an entry; `tool` for the result of a tool."""
    inner = next((entry[name] for name in ("message", "payload") if isinstance(entry.get(name), dict)), entry)
    role = inner.get("role") or entry.get("type") or ""
    content = inner.get("content")
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content or []:
        if not isinstance(block, dict):
            continue
        if block.get("type") in {"text", "input_text", "output_text"} and isinstance(block.get("text"), str):
            yield role, block["text"]
        elif block.get("type") == "tool_result":
            result = block.get("content")
            parts = [{"text": result}] if isinstance(result, str) else result or []
            yield from (("tool", part["text"]) for part in parts if isinstance(part.get("text"), str))


def _place(role: str) -> str:
    if "tool" in role.lower() or "bash" in role.lower():
        return "tool"
    return "user" if "user" in role.lower() else "document"


def _cut(text: str, place: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", text):
        lines = paragraph.splitlines()
        found = _joined(lines) if place == "tool" else (s for line in lines for s in re.split(r"(?<=[.!?])\s+", line))
        yield from (piece.strip() for piece in found if len(piece.strip()) > 8)


def _joined(lines: list[str]) -> Iterator[str]:
    """Consecutive lines, as many as `LONGEST` characters hold."""
    piece = ""
    for line in lines:
        if piece and len(piece) + len(line) > LONGEST:
            yield piece
            piece = ""
        piece += ("\n" if piece else "") + line[:LINE]
    yield piece
