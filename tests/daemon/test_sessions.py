"""The main job on real input: two coding sessions of others, questions written by somebody who had not seen memd."""

import json
from pathlib import Path
from typing import Any

import pytest

from memd.clients.importers.claude_code import read
from memd.protocol.event import Origin
from memd.protocol.recall import Heard, Hit

HERE = Path(__file__)
SESSIONS = HERE.parents[3] / "shared" / "data" / "sessions" / "claude-code"
QUESTIONS = json.loads((HERE.parents[1] / "data" / "session_questions.json").read_text())

pytestmark = pytest.mark.skipif(not SESSIONS.is_dir(), reason="the sample sessions are not beside this checkout")


def import_file(daemon: Any, path: Path) -> tuple[int, int, Origin]:
    """Accepted, known, and the origin of a file's own session; every line is accounted for."""
    transcript = read(path)
    account = transcript.account
    assert account.taken + sum(account.noise.values()) + len(account.malformed) == account.lines
    accepted = known = 0
    with daemon.client() as client:
        for session in transcript.sessions:
            for start in range(0, len(session.events), 200):
                taken = client.capture(session.origin, session.events[start : start + 200])
                accepted, known = accepted + taken.accepted, known + taken.duplicate
    return accepted, known, transcript.sessions[0].origin


def answers(found: Hit | Heard, turns: list[str], must: list[str]) -> bool:
    """Whether a hit rests on a turn that states the answer, with a quote that holds the words that matter."""
    if isinstance(found, Heard):
        where, quote = {found.turn}, found.quote
    else:
        where, quote = {span.turn for span in found.record.provenance.spans}, found.record.provenance.quote
    return any(turn.split("#")[0] in turns for turn in where) and all(word.lower() in quote.lower() for word in must)


@pytest.mark.slow
def test_two_real_sessions_are_distilled_and_answer_questions_R4_Q2_W13(daemon: Any) -> None:
    pools: list[str] = []
    for name in QUESTIONS:
        _, _, origin = import_file(daemon, SESSIONS / f"{name}.jsonl")
        daemon.settle()
        with daemon.client() as client:
            pools += [pool.pool for pool in client.pools().pools if pool.pool not in pools]
            records = client.list(document=origin.document, limit=500).records
            assert sum(record.type in ("decision", "lesson") for record in records) >= 5
            for record in records:
                assert client.why(record.id).quote_holds, record
    with daemon.client() as client:
        for questions in QUESTIONS.values():
            right = 0
            for asked in questions["answerable"]:
                told = client.recall(asked["question"], pools=pools, limit=5)
                found = sorted((*told.hits, *told.turns), key=lambda each: -each.score)[:5]
                right += any(answers(each, asked["turns"], asked["must"]) for each in found)
            assert right >= 6, right
        before = client.status()
    for name in QUESTIONS:
        assert import_file(daemon, SESSIONS / f"{name}.jsonl")[0] == 0
    daemon.settle()
    with daemon.client() as client:
        assert client.status().journal_seq == before.journal_seq
