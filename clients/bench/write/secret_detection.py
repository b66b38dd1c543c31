"""Secrets (W5, P-18) and invisible characters (P-19): detected by the daemon's own scan, without false alarms, and not
on the disk afterwards. No secret is printed."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, cast

import msgspec

from ....protocol.block import plain
from ....protocol.event import Origin, Said
from ...importers.transcript import batches
from ..measurement import BenchOptions, Figure, PartResult, at_least, at_most, zero_figure
from ..session_data import files
from ..temporary_daemon import empty_home, measure_texts, running, settle
from .secret_matrix import MatrixCase, cases, near_misses

NAMED = 12
AT = "2026-03-04T10:00:00+01:00"
LEAST = 12  # characters of the shortest secret that is searched for on the disk: shorter ones occur by chance
SAMPLES = Path(__file__).parents[1] / "samples"
OF_ANOTHER_RULE = msgspec.json.decode((SAMPLES / "other_secret_rules.json").read_bytes(), type=dict[str, set[str]])
"""Negative rows are labelled by rule: each near miss of one rule here holds a real secret of these other rules."""


Hits = tuple[tuple[str, int, int], ...]
"""Rule, start and end of each secret in one text."""


class ScanOutput(msgspec.Struct, frozen=True):
    """The output of the measurement `scan-texts`: for each text the rule, start and end of each secret, and whether the
    injection stage flags it; seconds of the first and of a second scan."""

    hits: tuple[Hits, ...]
    flagged: tuple[bool, ...]
    seconds: float
    again: float


def scanned(environment: Mapping[str, str], texts: Sequence[str]) -> ScanOutput:
    return msgspec.json.decode(measure_texts(environment, "scan-texts", texts), type=ScanOutput)


class LabelledRow(msgspec.Struct, frozen=True):
    """A text of the data, the rule it was made for, whether it holds a secret, and where."""

    text: str
    source: str
    rule: str
    label: int
    ranges: tuple[tuple[int, int], ...] | None = None


class JudgedRow(msgspec.Struct, frozen=True):
    row: LabelledRow
    hits: Hits

    @property
    def alarms(self) -> list[str]:
        """The rules that hit, but for those whose secret the row of another rule holds."""
        return sorted({rule for rule, _, _ in self.hits} - OF_ANOTHER_RULE.get(self.row.rule, set()))


def secrets(options: BenchOptions) -> PartResult:
    """Passwords in 32 forms, near misses, labelled rows, alarms on transcripts, speed, and secrets left on the disk."""
    with gzip.open(options.find("secrets/secrets_dev.jsonl.gz"), "rb") as lines:
        rows = [msgspec.json.decode(line, type=LabelledRow) for line in lines]
    texts = list(_texts(msgspec.structs.replace(options, quick=False)))  # a rate needs all of them
    size_mb = sum(map(len, texts)) / 1e6
    with empty_home() as (_, environment):
        options.progress("write/secrets: labelled rows")
        hits = scanned(environment, [row.text for row in rows]).hits
        options.progress("write/secrets: real transcripts")
        real = scanned(environment, texts)
        matrix, authored = cases(), near_misses()
        options.progress("write/secrets: forms and near misses")
        in_forms = scanned(environment, [case.text for case in matrix]).hits
        in_near_misses = scanned(environment, [text for text, _ in authored]).hits
    judged = [JudgedRow(row, of_row) for row, of_row in zip(rows, hits, strict=True)]
    alarms = [rule for hits in real.hits for rule, _, _ in hits]
    left, searched = _on_disk(judged)
    figures = (
        *_matrix_figures(matrix, in_forms),
        *_near_miss_figures([held_out for _, held_out in authored], in_near_misses),
        *_figures(judged),
        Figure("alarms a MB of real transcript", len(alarms) / size_mb, samples=len(texts), target=at_most(1)),
        Figure("scan, real transcripts", real.seconds * 1000 / size_mb, "ms/MB", samples=len(texts), target=at_most(5)),
        Figure("  again", real.again * 1000 / size_mb, "ms/MB", samples=len(texts)),
        zero_figure("secrets that were found and are on the disk", left, searched),
    )
    missed = [item.row.rule for item in judged if item.row.label and not item.hits]
    near = [f"{i.row.rule} (hit {', '.join(i.alarms)})" for i in judged if not i.row.label and i.alarms]
    notes = [
        f"{what}: {', '.join(names[:NAMED])}{' …' if len(names) > NAMED else ''}"
        for what, names in (("missed", missed), ("alarm on a near miss", near))
        if names
    ]
    notes += [f"alarm on a transcript: {rule}" for rule in alarms[:NAMED]]
    return PartResult(
        figures, notes=tuple(notes), shows_not="secrets that nothing announces and whose form no public rule knows"
    )


def _matrix_figures(matrix: Sequence[MatrixCase], hits: Sequence[Hits]) -> Iterator[Figure]:
    """The share of passwords of which nothing stays: overall, by half, by form, and by length and kind."""
    taken = [case.is_taken(of_case) for case, of_case in zip(matrix, hits, strict=True)]
    yield Figure(
        "passwords taken, 32 forms × 7 lengths × 2 kinds", fmean(taken), samples=len(taken), target=at_least(0.97)
    )
    groups: dict[str, list[bool]] = {}
    for case, is_taken in zip(matrix, taken, strict=True):
        kind = "human-made" if case.human else "random"
        half = "second half of the forms" if case.held_out else "first half of the forms"
        for name in (half, f"form: {case.form}", f"{kind}, {case.length} characters"):
            groups.setdefault(name, []).append(is_taken)
    for name in sorted(groups, key=lambda name: (name.startswith("form:"), name)):
        yield Figure(f"  {name}", fmean(groups[name]), samples=len(groups[name]))
    exact = fmean(case.is_exact(of_case) for case, of_case in zip(matrix, hits, strict=True))
    yield Figure("  the password and nothing else", exact, samples=len(matrix))


def _near_miss_figures(held_out: Sequence[bool], hits: Sequence[Hits]) -> Iterator[Figure]:
    alarms = [bool(of_text) for of_text in hits]
    yield Figure("alarms on authored near misses", fmean(alarms), samples=len(alarms), target=at_most(0.02))
    chosen = [alarm for alarm, is_held_out in zip(alarms, held_out, strict=True) if is_held_out]
    yield Figure("  second half of the near misses", fmean(chosen), samples=len(chosen))


def _figures(judged: Sequence[JudgedRow]) -> Iterator[Figure]:
    positive = [item for item in judged if item.row.label]
    negative = [item for item in judged if not item.row.label]
    right = sum(bool(item.hits) for item in positive)
    alarms = sum(bool(item.alarms) for item in negative)
    every_alarm = sum(bool(item.hits) for item in negative)
    yield Figure("secrets, F1", _f1(right, len(positive), alarms), samples=len(judged), target=at_least(0.95))
    for source in sorted({item.row.source for item in judged}):
        rest = [item for item in judged if item.row.source != source]
        yield Figure(f"  F1 without the rows of {source}", _f1_of(rest), samples=len(rest))
    yield Figure("  recall", right / len(positive), samples=len(positive))
    ranges = [(item.hits, start, end) for item in positive for start, end in item.row.ranges or ()]
    covered = sum(any(first < end and start < last for _, first, last in hits) for hits, start, end in ranges)
    yield Figure("  recall of marked places", covered / max(1, len(ranges)), samples=len(ranges))
    yield Figure("  precision", right / (right + alarms), samples=right + alarms)
    f1 = _f1(right, len(positive), every_alarm)
    yield Figure("  F1, another rule's secret an alarm too", f1, samples=len(judged))


def _f1_of(judged: Sequence[JudgedRow]) -> float:
    positive = [item for item in judged if item.row.label]
    right = sum(bool(item.hits) for item in positive)
    return _f1(right, len(positive), sum(bool(item.alarms) for item in judged if not item.row.label))


def _f1(right: int, positive: int, alarms: int) -> float:
    return 2 * right / (positive + right + alarms) if right else 0.0


def _on_disk(judged: Sequence[JudgedRow]) -> tuple[int, int]:
    """Secrets found by the scan that are in a file of a home that captured them, and secrets found in all."""
    wanted = {
        item.row.text[start:end].encode() for item in judged for _, start, end in item.hits if end - start >= LEAST
    }
    events = tuple(Said(turn=f"t{n}", at=AT, role="user", text=item.row.text) for n, item in enumerate(judged))
    with empty_home() as (home, environment):
        with running(home, environment) as client:
            for batch in batches(events):
                client.capture(Origin(host="bench", session="secrets"), batch)
            settle(client)
        paths = (path for path in home.data.parent.rglob("*") if path.is_file() and "ballast" not in path.name)
        content = b"".join(plain(path.read_bytes()) for path in paths)
    return sum(secret in content for secret in wanted), len(wanted)


def _texts(options: BenchOptions) -> Iterator[str]:
    """Every string of every line of the real sessions, tool output included: all that a host could send."""
    for _, path in files(options):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            if text := "\n".join(_strings(line)):
                yield text


def _strings(line: str) -> Iterator[str]:
    try:
        waiting: list[Any] = [json.loads(line)]
    except ValueError:
        return
    while waiting:
        match waiting.pop():
            case str() as text:
                yield text.encode("utf-8", "replace").decode()
            case list() as items:  # pyright: ignore[reportUnknownVariableType]
                waiting += cast("list[Any]", items)
            case dict() as items:  # pyright: ignore[reportUnknownVariableType]
                fields = cast("dict[str, Any]", items)
                waiting += [value for name, value in fields.items() if name not in {"signature", "data"}]
            case _:
                pass


# --- invisible characters --------------------------------------------------------------------------------------------
class CharacterCases(msgspec.Struct, frozen=True):
    """`hidden`: bidi controls, zero-width characters, tags, stray variation selectors, homoglyphs inside of a word.
    `honest`: emoji, flags, joined scripts, right-to-left text, other alphabets, symbols."""

    hidden: tuple[str, ...]
    honest: tuple[str, ...]


def invisible(options: BenchOptions) -> PartResult:
    """Bidi, zero-width, tag and homoglyph cases all found; no alarm on emoji, flags and right-to-left text."""
    cases = msgspec.json.decode((SAMPLES / "characters.json").read_bytes(), type=CharacterCases)
    with empty_home() as (_, environment):
        output = scanned(environment, [*cases.hidden, *cases.honest])
    flags = dict(zip((*cases.hidden, *cases.honest), output.flagged, strict=True))
    missed = [text for text in cases.hidden if not flags[text]]
    alarms = [text for text in cases.honest if flags[text]]
    figures = (
        zero_figure("hidden characters missed", len(missed), len(cases.hidden)),
        zero_figure("alarms on honest text", len(alarms), len(cases.honest)),
    )
    notes = [f"missed: {text!a}" for text in missed] + [f"alarm: {text!a}" for text in alarms]
    return PartResult(figures, notes=tuple(notes), shows_not="whole words in look-alike letters of one other script")
