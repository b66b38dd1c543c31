"""LoCoMo's conversations as notes and questions, with evidence as the audit corrected it.

Comes in: `locomo_dev5.json` and its audit. Goes out: conversations. Invariants: the text of a turn is all that is
stored, with its speaker's name and an image's caption; categories keep their numbers; a question whose evidence names
no known turn is left out.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from ..part import Setting
from .store import Note

ANSWERABLE = frozenset({1, 2, 3, 4})
_TURN = re.compile(r"D\d+:\d+")
_BETWEEN = timedelta(seconds=20)


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A question, the turns that answer it, its category."""

    text: str
    evidence: frozenset[str]
    category: int


class Talk(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation of many sessions."""

    name: str
    notes: tuple[Note, ...]
    questions: tuple[Asked, ...]


def conversations(setting: Setting) -> list[Talk]:
    """The conversations of the data folder. Raises DataMissing."""
    folder = setting.find("locomo")
    corrected = {one["question_id"]: one["correct_evidence"] for one in _json(folder / "audit_dev5.json")}
    return [_talk(number, whole, corrected) for number, whole in enumerate(_json(folder / "locomo_dev5.json"))]


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _talk(number: int, whole: dict[str, Any], corrected: dict[str, list[str]]) -> Talk:
    notes: list[Note] = []
    session, said = 1, whole["conversation"]
    while (date := said.get(f"session_{session}_date_time")) is not None:
        begin = datetime.strptime(date, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        spoken: list[dict[str, Any]] = said.get(f"session_{session}") or []
        for place, turn in enumerate(spoken):
            image = f" [image: {turn['blip_caption']}]" if "blip_caption" in turn else ""
            notes.append(
                Note(
                    name=turn["dia_id"],
                    text=f"{turn['speaker']}: {turn['text']}{image}",
                    at=(begin + place * _BETWEEN).isoformat(),
                    talk=f"talk-{number}-{session}",
                    author=turn["speaker"],
                )
            )
        session += 1
    known = {note.name for note in notes}
    questions: list[Asked] = []
    for place, asked in enumerate(whole["qa"]):
        name = f"locomo_{number}_qa{place}"
        cited: list[str] = corrected[name] if name in corrected else asked["evidence"]
        turns = frozenset(turn for each in cited for turn in _TURN.findall(str(each))) & known
        if turns:
            questions.append(Asked(text=asked["question"], evidence=turns, category=asked["category"]))
    return Talk(name=whole["sample_id"], notes=tuple(notes), questions=tuple(questions))
