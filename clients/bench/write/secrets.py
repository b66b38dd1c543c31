"""What the door lets in: secrets found and not imagined, on no disk afterwards, and characters that nobody sees.

Comes in: a setting with labelled rows and real sessions. Goes out: figures, misses and alarms by rule, never by their
words. Invariants: texts are judged by the daemon's own scan, in its own process; no secret is printed.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import msgspec

from ....protocol.block import plain
from ....protocol.event import Origin, Said
from ...importers.transcript import batches
from ..figure import Figure, at_least, at_most
from ..home import empty_home, running, settle
from ..offline import offline
from ..part import Part, Setting
from ..sessions import files

NAMED = 12
AT = "2026-03-04T10:00:00+01:00"
LEAST = 12
"""Characters of a secret that is looked for on the disk: shorter ones stand there by chance."""

OF_ANOTHER_RULE = {
    "anthropic-api-key": {"anthropic-admin-api-key", "model-api-key"},
    "anthropic-admin-api-key": {"anthropic-api-key", "model-api-key"},
    "clickhouse-cloud-api-secret-key": {"generic-api-key"},
    "np.slack.2": {"slack-user-token", "slack-legacy-bot-token"},
    "np.slack.4": {"slack-bot-token", "slack-legacy-bot-token"},
    "np.slack.6": {"slack-bot-token", "slack-user-token"},
    "np.hashicorp.1": {"vault-service-token"},
    "np.hashicorp.2": {"vault-batch-token"},
    "np.hashicorp.4": {"vault-token-near"},
    "np.aws.2": {"generic-secret"},
    "np.generic.1": {"azure-ad-client-secret", "generic-api-key"},
    "np.twitch.1": {"generic-api-key"},
    "np.newrelic.2": {"new-relic-license-key"},
    "np.odbc.1": {"quoted-password"},
}
"""Negatives are per rule: what each of these rows holds beside its own rule's near miss is another rule's secret."""


class Scanned(msgspec.Struct, frozen=True):
    """What the daemon's `scan-texts` says: for each text the rule, start and end of each secret, and whether the stage
    would flag it."""

    hits: tuple[tuple[tuple[str, int, int], ...], ...]
    flagged: tuple[bool, ...]
    seconds: float
    again: float

    @property
    def rules(self) -> tuple[tuple[str, ...], ...]:
        """The rules that hit each text."""
        return tuple(tuple(rule for rule, _, _ in hits) for hits in self.hits)


def scanned(environment: Mapping[str, str], texts: Sequence[str]) -> Scanned:
    """The daemon's own judgement of texts."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "texts.json"
        path.write_bytes(msgspec.json.encode(texts))
        return msgspec.json.decode(offline(environment, "scan-texts", str(path)), type=Scanned)


def secrets(setting: Setting) -> Part:
    """Labelled rows told apart, alarms on real transcripts, speed, and bytes of secrets on the disk (W5, P-18)."""
    with gzip.open(setting.find("secrets/secrets_dev.jsonl.gz"), "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    texts = list(_texts(msgspec.structs.replace(setting, quick=False)))  # a rate needs them all
    size_mb = sum(map(len, texts)) / 1e6
    with empty_home() as (_, environment):
        setting.tell("write/secrets: labelled rows")
        labelled = scanned(environment, [row["text"] for row in rows])
        setting.tell("write/secrets: real transcripts")
        real = scanned(environment, texts)
    alarms = [rule for rules in real.rules for rule in rules]
    left, looked_for = _on_disk([row["text"] for row in rows], labelled)
    figures = (
        *_told_apart(rows, labelled),
        Figure(name="alarms a MB of real transcript", value=len(alarms) / size_mb, samples=len(texts),
               target=at_most(1)),
        Figure(name="scan, real transcripts", value=real.seconds * 1000 / size_mb, unit="ms/MB", samples=len(texts),
               target=at_most(5)),
        Figure(name="  again, its states built", value=real.again * 1000 / size_mb, unit="ms/MB", samples=len(texts)),
        Figure(name="secrets that were found and are on the disk", value=left, target=at_most(0), samples=looked_for),
    )  # fmt: skip
    notes = [*_errors(rows, labelled), *(f"alarm on a transcript: {rule}" for rule in alarms[:NAMED])]
    return Part(figures=figures, notes=tuple(notes), shows_not="secrets of forms that no public rule knows")


def _told_apart(rows: Sequence[dict[str, Any]], labelled: Scanned) -> Iterator[Figure]:
    right = sum(bool(rules) for row, rules in zip(rows, labelled.rules, strict=True) if row["label"])
    secret = sum(bool(row["label"]) for row in rows)
    every = sum(bool(rules) for row, rules in zip(rows, labelled.rules, strict=True) if not row["label"])
    alarms = sum(
        bool(set(rules) - OF_ANOTHER_RULE.get(row["rule"], set()))
        for row, rules in zip(rows, labelled.rules, strict=True)
        if not row["label"]
    )
    yield Figure(name="secrets, F1", value=_f1(right, secret, alarms), samples=len(rows), target=at_least(0.95))
    yield Figure(name="  recall", value=right / secret, samples=secret)
    ranges = [(hits, start, end) for row, hits in zip(rows, labelled.hits, strict=True)
              for start, end in (row.get("ranges") or ()) if row["label"]]  # fmt: skip
    covered = sum(any(first < end and start < last for _, first, last in hits) for hits, start, end in ranges)
    yield Figure(name="  recall of marked places", value=covered / max(1, len(ranges)), samples=len(ranges))
    yield Figure(name="  precision", value=right / (right + alarms), samples=right + alarms)
    yield Figure(name="  F1, another rule's secret an alarm too", value=_f1(right, secret, every), samples=len(rows))


def _f1(right: int, secret: int, alarms: int) -> float:
    return 2 * right / (secret + right + alarms) if right else 0.0


def _errors(rows: Sequence[dict[str, Any]], labelled: Scanned) -> Iterator[str]:
    missed = [row["rule"] for row, rules in zip(rows, labelled.rules, strict=True) if row["label"] and not rules]
    alarms = [
        f"{row['rule']} (hit {', '.join(extra)})"
        for row, rules in zip(rows, labelled.rules, strict=True)
        if not row["label"] and (extra := sorted(set(rules) - OF_ANOTHER_RULE.get(row["rule"], set())))
    ]
    for what, names in (("missed", missed), ("alarm on a near miss", alarms)):
        if names:
            yield f"{what}: {', '.join(names[:NAMED])}{' …' if len(names) > NAMED else ''}"


def _on_disk(texts: Sequence[str], labelled: Scanned) -> tuple[int, int]:
    """How many of the secrets that the scan finds stand in any file of a home that captured them, of how many."""
    wanted = {
        text[start:end].encode()
        for text, hits in zip(texts, labelled.hits, strict=True)
        for _, start, end in hits
        if end - start >= LEAST
    }
    events = tuple(Said(turn=f"t{n}", at=AT, role="user", text=text) for n, text in enumerate(texts))
    with empty_home() as (where, environment):
        with running(where, environment) as client:
            for batch in batches(events):
                client.capture(Origin(host="bench", session="secrets"), batch)
            settle(client)
        folder = where.data.parent
        content = b"".join(
            plain(path.read_bytes()) for path in folder.rglob("*") if path.is_file() and "ballast" not in path.name
        )
    return sum(secret in content for secret in wanted), len(wanted)


def _texts(setting: Setting) -> Iterator[str]:
    """Every string of every line of the real sessions, tool output included: what a host could ever send."""
    for _, path in files(setting):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            if words := "\n".join(_strings(line)):
                yield words


def _strings(line: str) -> Iterator[str]:
    try:
        waiting: list[Any] = [json.loads(line)]
    except ValueError:
        return
    while waiting:
        match waiting.pop():
            case str() as words:
                yield words.encode("utf-8", "replace").decode()
            case list() as each:  # pyright: ignore[reportUnknownVariableType]
                waiting += cast("list[Any]", each)
            case dict() as each:  # pyright: ignore[reportUnknownVariableType]
                fields = cast("dict[str, Any]", each)
                waiting += [value for name, value in fields.items() if name not in {"signature", "data"}]
            case _:
                pass


# --- characters that nobody sees -------------------------------------------------------------------------------------
SAMPLES = Path(__file__).parents[1] / "samples" / "characters.json"


class Characters(msgspec.Struct, frozen=True):
    """`hidden`: bidi controls, zero-width characters, tags, stray variation selectors, homoglyphs inside of a word.
    `honest`: emoji, flags, joined scripts, right-to-left text, other alphabets, symbols."""

    hidden: tuple[str, ...]
    honest: tuple[str, ...]


def invisible(setting: Setting) -> Part:
    """Bidi, zero-width, tag and homoglyph cases all found; no alarm on emoji, flags and right-to-left text (P-19)."""
    cases = msgspec.json.decode(SAMPLES.read_bytes(), type=Characters)
    with empty_home() as (_, environment):
        found = scanned(environment, [*cases.hidden, *cases.honest])
    flags = dict(zip((*cases.hidden, *cases.honest), found.flagged, strict=True))
    missed = [text for text in cases.hidden if not flags[text]]
    alarms = [text for text in cases.honest if flags[text]]
    figures = (
        Figure(name="hidden characters missed", value=len(missed), target=at_most(0), samples=len(cases.hidden)),
        Figure(name="alarms on honest text", value=len(alarms), target=at_most(0), samples=len(cases.honest)),
    )
    notes = [f"missed: {text!a}" for text in missed] + [f"alarm: {text!a}" for text in alarms]
    return Part(figures=figures, notes=tuple(notes), shows_not="whole words in look-alike letters of one other script")
