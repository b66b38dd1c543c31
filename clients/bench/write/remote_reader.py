"""What a remote model adds to what memd learns by itself (W4): real sessions with gold lists, read without and with the
model that the user chose with `memd remote use`.

The sessions lie in temporary homes; nothing is asked without the user's choice of a model and without `--remote`.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec

from ....protocol.errors import InvalidRequest
from ....protocol.event import SessionEnded
from ....protocol.places import Places, places
from ....protocol.record import Record
from ....protocol.remote import Dialect
from ...importers.transcript import CapturedSession
from ...python.client import Client
from ..corpus import corpus_folder, load_scorer, models_without, read_session, repository, session_names
from ..measurement import BenchOptions, DataMissing, Figure, PartResult, share, zero_figure
from ..session_data import deliver, records
from ..temporary_daemon import settle, temporary_daemon

READER = "remote:"
FAILURES = 3
"""Failed calls after which a session is left as it is."""

DAILY_TOKENS = 200_000
"""What a run may cost where the user's settings do not say; as memd's own default for a day."""

ANSWERS = " → "
"""What stands in a record's content between the words of two places, such as a question and its answer."""

_LOOK_S, _POLL_S = 0.2, 0.5
_FAILED = ("refused", "unsent", "failed", "timed out", "unknown")


class ChosenModel(msgspec.Struct, frozen=True, kw_only=True):
    """The model in the user's `remote.json`."""

    url: str
    dialect: Dialect
    model: str
    trusted: bool = False


class RemoteReading(NamedTuple):
    """What a session gave: all records without and with the model, invented ones, the model's own records, tokens,
    statements taken and dropped, and why memd stopped early."""

    without: list[Record]
    read: list[Record]
    invented: list[str]
    learnt: int = 0
    tokens: int = 0
    pointed: int = 0
    dropped: int = 0
    stopped: str = ""


def remote(options: BenchOptions) -> PartResult:
    """Real sessions without and with the remote model of `memd remote use`: right, invented, tokens a record."""
    if not options.remote:
        raise DataMissing(
            "asks a remote model", hint="--remote sends the sessions of --data to the model that you chose"
        )
    home = places(os.environ, os.getuid())
    chosen, rules = _chosen(home), _rules(home)
    folder = corpus_folder(options)
    scorer = load_scorer(folder)
    left = int(rules.get("daily_tokens", DAILY_TOKENS))
    gold: dict[str, list[Mapping[str, Any]]] = {"without": [], "with": []}
    kept: dict[str, list[bool]] = {"without": [], "with": []}
    readings: list[RemoteReading] = []
    notes: list[str] = []
    for session in session_names(options):
        options.progress(f"write/remote: {session} to {chosen.url}")
        settings = {**models_without(repository(session)), "MEMD_IDLE_S": "0.2"}
        settings["MEMD_REMOTE"] = _inline({**rules, "every_s": _LOOK_S, "daily_tokens": left})
        with TemporaryDirectory(prefix="memd-bench-") as root, temporary_daemon(settings) as client:
            subprocess.run(["git", "init", "-q", root], check=True)
            reading = _read(client, home, chosen, read_session(folder, scorer, session, root))
        left -= reading.tokens
        readings.append(reading)
        for name, listed in (("without", reading.without), ("with", reading.read)):
            rows = [msgspec.to_builtins(record) for record in listed]
            graded = scorer.grade("dev", session, {"records": rows, "asks": [], "host": ""})
            gold[name] += graded["items"]
            kept[name] += [clause["kept"] for clause in graded["must_not"]]
        notes += [f"invented: {words}" for words in reading.invented]
        if reading.stopped:
            notes.append(f"{session}: stopped early: {reading.stopped}")
    return PartResult(
        tuple(_figures(readings, gold, kept)),
        notes=(f"{chosen.model} at {chosen.url}", *notes),
        shows_not="other models, and whether a record of the model is worth its tokens to you",
    )


def _figures(
    readings: list[RemoteReading], gold: Mapping[str, list[Mapping[str, Any]]], kept: Mapping[str, list[bool]]
) -> Iterator[Figure]:
    for name, items in gold.items():
        yield share(f"gold kept whole, {name} the model", sum(item["got"] == "whole" for item in items), len(items))
        yield share("  whole or partly", sum(item["got"] != "no" for item in items), len(items))
        yield share("  clauses kept that must not be", sum(kept[name]), len(kept[name]))
    total = Counter[str]()
    for reading in readings:
        numbers = {name: getattr(reading, name) for name in ("learnt", "tokens", "pointed", "dropped")}
        total.update({**numbers, "invented": len(reading.invented)})
    yield zero_figure("invented", total["invented"], total["learnt"])
    yield Figure("records of the model", total["learnt"], samples=len(readings))
    yield share("  statements taken", total["pointed"], total["pointed"] + total["dropped"])
    yield Figure("tokens", total["tokens"], samples=len(readings))
    if total["learnt"]:
        yield Figure("  tokens a record", total["tokens"] / total["learnt"], samples=total["learnt"])


def _chosen(home: Places) -> ChosenModel:
    """Return the model that the user chose. Raises DataMissing."""
    try:
        return msgspec.json.decode((home.config / "remote.json").read_bytes(), type=ChosenModel)
    except (OSError, msgspec.MsgspecError) as error:
        raise DataMissing(
            "no remote model is chosen, so none was asked", hint="memd remote use ollama --model NAME"
        ) from error


def _rules(home: Places) -> dict[str, Any]:
    """Return the user's settings in `[remote]`. Raises InvalidRequest."""
    file, inline = home.config / "memd.toml", os.environ.get("MEMD_REMOTE", "")
    try:
        text = f"remote = {inline}" if inline else file.read_text(encoding="utf-8") if file.exists() else ""
        return dict(tomllib.loads(text).get("remote", {}))
    except (OSError, ValueError) as error:
        raise InvalidRequest("the settings do not parse", hint="`memd config list` names the place") from error


def _inline(rules: Mapping[str, Any]) -> str:
    """Return settings as an inline table of TOML."""
    return f"{{{', '.join(f'{name} = {json.dumps(value)}' for name, value in rules.items())}}}"


def _read(client: Client, home: Places, chosen: ChosenModel, sessions: tuple[CapturedSession, ...]) -> RemoteReading:
    """Capture a session with its subagents' and let first memd alone, then the model read it."""
    deliver(client, map(_ended, sessions))
    settle(client)
    without = list(records(client))
    state = client.use_remote(chosen.url, chosen.model, dialect=chosen.dialect, trusted=chosen.trusted)
    if (key := home.remote_key(state.host)).exists():
        link = client.places.remote_key(state.host)
        link.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        link.symlink_to(key)  # a copy of the key would outlive a run that is killed
    for pool in client.pools().pools:
        client.consent_remote(pool.pool, days=1, private=True)
    stopped = _wait(client, [session.origin.document for session in sessions])
    client.stop_remote()
    settle(client)
    read = list(records(client))
    learnt = [record for record in read if record.provenance.distiller.startswith(READER)]
    calls = client.remote().calls
    return RemoteReading(
        without,
        read,
        [record.content for record in learnt if is_invented(client, record)],
        len(learnt),
        sum(call.tokens for call in calls),
        sum(call.pointed for call in calls),
        sum(call.dropped for call in calls),
        stopped,
    )


def _ended(session: CapturedSession) -> CapturedSession:
    """Return a session that has ended: only such are sent."""
    if any(isinstance(event, SessionEnded) for event in session.events):
        return session
    end = SessionEnded(turn="memd-bench-end", at=session.events[-1].at)
    return msgspec.structs.replace(session, events=(*session.events, end))


def _wait(client: Client, documents: list[str]) -> str:
    """Wait until the model has read the sessions; return why it did not read all."""
    while True:
        state = client.remote()
        summary = state.summary.state if state.summary else "the model was switched off"
        if (
            sum(call.outcome in _FAILED and call.status != 400 for call in state.calls) >= FAILURES
            or "tokens" in summary
        ):
            return summary
        is_sending = any(call.outcome == "sending" for call in state.calls)
        if not is_sending and not any(client.preview_remote(document).bodies for document in documents):
            return ""
        time.sleep(_POLL_S)


def is_invented(client: Client, record: Record) -> bool:
    """Whether the archive does not have a record's quote, or its content, character by character but for blanks."""
    said: list[str] = []
    for span in record.provenance.spans:
        turns = client.transcript(span.document, around=span.turn, limit=1).turns
        said += [turn.text for turn in turns if turn.turn == span.turn]
    text = _flat(" ".join(said))
    return any(_flat(part) not in text for part in (record.provenance.quote, *record.content.split(ANSWERS)))


def _flat(words: str) -> str:
    return " ".join(words.split())
