"""What is lost behind a reader that understands everything (W4): for each real session, the gold list's quotes are
pointed at as a perfect reader would, and graded as what memd learns by itself is.

What is missing then is lost by the acceptance step and the stages, not by the reader.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import msgspec

from ...protocol.event import STATEMENTS, StatementType
from ...protocol.reflection import Statement
from ..python.client import Client
from .corpus import corpus_folder, load_scorer, read_session, session_names
from .measurement import BenchOptions, PartResult, at_least, share
from .session_data import deliver
from .temporary_daemon import settle, temporary_daemon

TYPES: Mapping[str, StatementType] = {
    "correction": "preference",
    "open": "commitment",
    "need": "fact",
    "constraint": "fact",
}
"""The type of a statement by a gold item's kind, where they differ."""

PAGE = 500


def perfect(options: BenchOptions) -> PartResult:
    """Real sessions read by a reader that points at each quote of the gold lists: what memd still loses."""
    folder = corpus_folder(options)
    scorer = load_scorer(folder)
    items: list[Mapping[str, Any]] = []
    refused: Counter[str] = Counter()
    asked = 0
    for session in session_names(options):
        options.progress(f"perfect: {session}")
        gold = [item for item in scorer.gold("dev", session) if item["type"] == "gold"]
        statements = [_statement(item) for item in gold]
        asked += len(statements)
        records = list(_records(folder, scorer, session, statements, refused))
        graded = scorer.grade("dev", session, {"records": records, "asks": [], "host": ""})
        items += graded["items"]
    whole = sum(item["got"] == "whole" for item in items)
    touched = sum(item["got"] != "no" for item in items)
    figures = [
        share("gold kept whole", whole, len(items), at_least(0.9)),
        share("  whole or partly", touched, len(items)),
        *(share(f"  refused: {reason}", count, asked) for reason, count in refused.most_common()),
    ]
    lost = [item["statement"] for item in items if item["got"] != "whole"]
    return PartResult(
        tuple(figures),
        notes=tuple(f"lost: {statement}" for statement in lost),
        shows_not="what a real reader would find; the gold lists' own quotes are given",
    )


def _statement(item: Mapping[str, Any]) -> Statement:
    kind = TYPES.get(item["kind"], item["kind"])
    quotes = tuple(quote["text"] for quote in item["quotes"])
    return Statement(type=kind, quotes=quotes[:3], about="user" if item["whose"] == "user" else "project")


def _records(
    folder: Any, scorer: ModuleType, session: str, statements: Sequence[Statement], refused: Counter[str]
) -> Iterator[Mapping[str, Any]]:
    """Yield all records of a session that was read so, as JSON."""
    with TemporaryDirectory(prefix="memd-bench-") as repository, temporary_daemon() as client:
        subprocess.run(["git", "init", "-q", repository], check=True)
        captured = read_session(folder, scorer, session, repository)
        deliver(client, captured)
        settle(client)
        document = captured[0].origin.document
        for first in range(0, len(statements), STATEMENTS):
            reflection = client.reflect(document, statements=statements[first : first + STATEMENTS])
            refused.update(refusal.reason for refusal in reflection.refused)
        settle(client)
        yield from _listed(client)


def _listed(client: Client) -> Iterator[Mapping[str, Any]]:
    after = ""
    while True:
        page = client.list(limit=PAGE, after=after)
        for record in page.records:
            yield msgspec.to_builtins(record)
        after = page.next
        if not after:
            return
