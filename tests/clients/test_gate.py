"""`memd bench gate`: records drawn by a seed beside their sources, and the verdict of a graded sheet (U5)."""

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memd.clients.bench import gate
from memd.clients.bench.measurement import BenchOptions, PartResult
from memd.clients.bench.session_data import SAMPLE
from memd.clients.importers.transcript import CapturedSession
from memd.protocol.errors import InvalidRequest
from memd.protocol.event import Origin, Said
from memd.protocol.record import Provenance, Record, Span, Status

ORIGIN = Origin(host="pi", session="s", live=False)
WORDS = "Hello.\nWe keep\nthe door small. Good."
QUOTE = "We keep\nthe door small."


def record(number: int, status: Status = "active") -> Record:
    span = Span("pi:s", "t", 7, 7 + len(QUOTE))
    source = Provenance(author="ada", source="pi:s", trust="user", spans=(span,), quote=QUOTE, said_at="")
    return Record(
        id=f"r{number}", pool="p", kind="note", status=status, content=QUOTE, description="The door.", provenance=source
    )


def session(*at: str, name: str = "s") -> CapturedSession:
    events = tuple(Said(turn=f"t{n}" if n else "t", at=each, role="user", text=WORDS) for n, each in enumerate(at))
    return CapturedSession(origin=msgspec.structs.replace(ORIGIN, session=name), events=events)


def sheet(folder: Path, count: int = 3, noted: int = 0) -> tuple[Path, Path]:
    live = [*(record(n) for n in range(count)), *(record(n, "quarantined") for n in range(count, count + noted))]
    drawn = gate.drawn(live, [session("2026-01-01T09:00:00Z")], 1)
    return gate.write(gate.Sheet(seed=1, records=count, hours=1.0, drawn=drawn), folder)


def graded(path: Path, *given: str) -> Path:
    words = path.read_text(encoding="utf-8")
    for grade in given:
        words = words.replace("grade: \n", f"grade: {grade}\n", 1)
    path.write_text(words, encoding="utf-8")
    return path


def values(part: PartResult) -> dict[str, float]:
    return {figure.name: figure.value for figure in part.figures}


def test_the_same_seed_draws_the_same_records_and_fifty_at_most() -> None:
    kept, sessions = [record(n) for n in range(80)], [session("2026-01-01T09:00:00Z")]
    first = gate.drawn(kept, sessions, 7)
    assert first == gate.drawn(kept, sessions, 7) != gate.drawn(kept, sessions, 8)
    assert len({one.id for one in first}) == 50


def test_fifty_of_each_tier_are_drawn_or_those_of_the_one_that_is_named_U5() -> None:
    kept, sessions = [record(n, "quarantined" if n % 2 else "active") for n in range(120)], list[CapturedSession]()
    tiers = [one.tier for one in gate.drawn(kept, sessions, 7)]
    assert (tiers.count("believed"), tiers.count("noted")) == (50, 50) and tiers != sorted(tiers)
    assert {one.tier for one in gate.drawn(kept, sessions, 7, ["noted"])} == {"noted"}


def test_a_record_stands_beside_the_words_around_its_quote() -> None:
    (one,) = gate.drawn([record(1)], [session("2026-01-01T09:00:00Z")], 1)
    assert (one.before, one.quote, one.after) == ("Hello.\n", QUOTE, " Good.")


def test_a_gap_counts_five_minutes_at_most_and_helpers_are_part_of_their_session() -> None:
    main = session("2026-01-01T09:00:00Z", "2026-01-01T09:03:00Z", "2026-01-01T12:00:00Z")
    helper = session("2026-01-01T09:01:00Z", name="s/helper")
    assert gate.hours_of([main, helper]) == {"pi:s": pytest.approx(8 / 60)}


def test_a_graded_sheet_gives_a_verdict_from_markdown_and_from_json_alike(tmp_path: Path) -> None:
    markdown, as_json = sheet(tmp_path)
    told = gate.gate(BenchOptions(grades=graded(markdown, "right", "invented", "trivial")))
    assert values(told) == {
        "believed: right and worth keeping": pytest.approx(1 / 3),
        "  borne out, not worth keeping": pytest.approx(1 / 3),
        "  borne out, but wrong": 0,
        "  not borne out": 1,
    }
    assert [figure.name for figure in told.missed] == ["believed: right and worth keeping", "  not borne out"]
    assert told.figures[0].low is not None and told.notes == ("trivial: 3", "invented: 2")
    read = json.loads(as_json.read_text())
    for one, grade in zip(read["drawn"], ("right", "invented", "trivial"), strict=True):
        one["grade"] = grade
    as_json.write_text(json.dumps(read))
    assert values(gate.gate(BenchOptions(grades=as_json))) == values(told)


def test_each_tier_has_a_verdict_and_more_of_the_noted_may_be_of_no_use_U5(tmp_path: Path) -> None:
    markdown, as_json = sheet(tmp_path, 50, 50)
    tiers = [one["tier"] for one in json.loads(as_json.read_text())["drawn"]]
    numbers = {tier: iter(range(50)) for tier in ("believed", "noted")}

    def grade(tier: str, wrong: int, right: int) -> str:
        number = next(numbers[tier])
        return "wrong" if number < wrong else "right" if number < wrong + right else "trivial"

    told = gate.gate(
        BenchOptions(grades=graded(markdown, *(grade(t, *((3, 45) if t == "believed" else (20, 30))) for t in tiers)))
    )
    assert [figure.value for figure in told.figures] == [0.9, 0.04, 0.06, 0, 0.6, 0, 0.4, 0]
    assert told.missed == (told.figures[2],)


def test_a_sheet_that_is_not_graded_to_its_end_gives_no_verdict(tmp_path: Path) -> None:
    markdown, as_json = sheet(tmp_path)
    for path, what in (
        (graded(markdown, "right", "splendid", "right"), "record 2 .*'splendid' is no grade"),
        (as_json, "record 1 .*there is no grade"),
        (tmp_path / "none.md", "can't be read"),
    ):
        with pytest.raises(InvalidRequest, match=what):
            gate.gate(BenchOptions(grades=path))


def test_a_gate_that_is_missed_ends_with_exit_code_1_U5(memd: Any, tmp_path: Path) -> None:
    for grades, code, word in (
        (("right", "right", "right"), 0, "3 of 3 targets met"),
        (("right", "trivial", "right"), 1, "missed: gate/records"),
        (("right", "splendid", "right"), 1, "failed: records"),
    ):
        markdown, _ = sheet(tmp_path)
        path = graded(markdown, *grades)
        told = memd("bench", "gate", "--grades", str(path))
        assert (told.code, memd("bench", "gate", "--grades", str(path), "--json").code) == (code, code)
        assert word in " ".join(told.text.split())
    assert "Exit code 1 if missed" in " ".join(memd("bench", "--help").text.split())


def test_sessions_of_a_folder_are_distilled_and_drawn(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "sessions" / "claude-code"
    folder.mkdir(parents=True)
    shutil.copy(SAMPLE, folder / "one.jsonl")
    part = gate.gate(BenchOptions(data=tmp_path / "data", sheet=tmp_path / "sheet"))
    told = msgspec.json.decode((tmp_path / "sheet" / "gate.json").read_bytes(), type=gate.Sheet)
    assert 0 < len(told.drawn) <= told.records and part.figures[0].samples == told.records
    words = SAMPLE.read_text(encoding="utf-8")
    for one in told.drawn:
        assert json.dumps(one.quote, ensure_ascii=False)[1:-1] in words
    assert (tmp_path / "sheet" / "gate.md").read_text().count("\ngrade:") == len(told.drawn)
