"""Agents: a role, perspectives and a memory of their own, by the mechanisms of every other pool (P5, R7, S3)."""

import time
from typing import Any

import numpy as np
import pytest

from memd.clients.python import Client
from memd.protocol.errors import InvalidRequest
from memd.protocol.event import Origin, Said, SessionEnded
from memd.protocol.recall import Hit, Recalled
from memd.protocol.request import Remember

AT = "2026-03-10T09:00:00+01:00"
TOLD = "We chose the northern depot for spare rotors, because the southern one floods every spring."
MINE = "I prefer phone calls over e-mail for urgent orders."

BASE = (
    "Orders above nine thousand need a second signature.",
    "Aldor raised its prices for steel orders twice last year.",
    "Rail is the slowest way for orders from the coast.",
    "Brunn takes orders by telephone only.",
    "Copper orders are cheaper in the autumn.",
    "The warehouse refuses orders without a pallet label.",
    "Cato lost two of our orders in the flood.",
    "Glass orders break unless they travel upright.",
    "Drava answers orders within an hour.",
    "Customs hold orders from overseas for nine days.",
    "Elbin bundles small orders into one crate.",
    "Rope orders are measured in metres, not in feet.",
    "Farrow invoices orders before they leave.",
    "Paint orders must not freeze on the way.",
    "Gessler sends spare parts along with orders for pumps.",
    "The portal closes orders at noon on Fridays.",
)
QUESTION = "our orders"
AGENTS = {"buyer": "cost", "tester": "risk", "twin": "cost"}


def said_by(client: Client, agent: str, lines: list[str], role: Any = "assistant") -> None:
    origin = Origin(host="test", session=f"work-{agent}-{role}", agent=agent)
    events = [Said(turn=str(n), at=AT, role=role, text=line) for n, line in enumerate(lines)]
    client.capture(origin, [*events, SessionEnded(turn="session-end", at=AT)])


def test_an_agent_keeps_what_it_says_itself_and_nobody_else_reads_it_P5(daemon: Any) -> None:
    with daemon.client() as client:
        opened = client.open_agent("buyer", role="buys parts", perspectives=["cost", "delivery"])
        assert (opened.pool, opened.new) == ("agent/buyer", True)
        client.open_agent("tester")
        said_by(client, "buyer", [TOLD])
        said_by(client, "buyer", [MINE], "user")
        daemon.settle()
        pools = {record.content: record.pool for record in client.list(limit=50).records}
        assert pools == {TOLD: "agent/buyer", MINE: "personal"}
        asked = "where are the spare rotors kept"
        assert [hit.record.content for hit in client.recall(asked, agent="buyer").hits] == [TOLD]
        assert not client.recall(asked).hits and not client.recall(asked, agent="tester").hits
        changed = client.open_agent("buyer", perspectives=["quality"])
        assert (changed.new, changed.role, changed.perspectives) == (False, "buys parts", ("quality",))
        (listed,) = [each for each in client.pools().pools if each.pool == "agent/buyer"]
        assert (listed.role, listed.perspectives, listed.counts) == ("buys parts", ("quality",), {"quarantined": 1})
        with pytest.raises(InvalidRequest):
            client.open_agent("no/name")


def test_an_agent_that_nobody_opened_has_no_pool_P5(daemon: Any) -> None:
    with daemon.client() as client:
        said_by(client, "stranger", [TOLD])
        daemon.settle()
        assert [record.pool for record in client.list(limit=50).records] == ["personal"]


def test_agents_with_other_work_answer_the_same_question_in_their_own_way_P5_Q6(daemon: Any) -> None:
    """Through the daemon's own reads and scorers: the same base, other uses under other perspectives."""
    half, number = len(BASE) // 2, len(BASE)
    own, neutral = range(half), range(half, number)
    chance = np.random.default_rng(7)
    often = np.repeat([3, 1], half // 2) / (2 * half)
    mine, others = (chance.choice(half, 54, p=share).tolist() for share in (often, often[::-1]))
    work = {"buyer": mine, "tester": others, "twin": mine}
    with daemon.client() as client:
        for agent in AGENTS:
            client.open_agent(agent)
            told = Origin(host="test", session=f"base-{agent}", agent=agent)
            for n, line in enumerate(BASE):
                at = AT.replace("09:00", f"09:{n:02}")
                client.remember(Remember(text=line, turn=str(n), at=at, origin=told, role="assistant"))
            daemon.settle()  # until then its records lie in the user's pool, where the next agent would restate them
        end = time.monotonic() + 90  # the keyword index counts words anew a second after the last record
        while not is_whole(client) and time.monotonic() < end:
            time.sleep(0.1)
        for uses in (slice(24), slice(24, None)):  # after the second lot each has a scorer of its own
            put_to_use(client, {agent: done[uses] for agent, done in work.items()})
            ranked = {agent: answered(client, agent) for agent in AGENTS}
            assert all(len(each) == number for each in ranked.values())
            assert spearman(ranked["buyer"], ranked["tester"], own) <= 0.9
            assert spearman(ranked["buyer"], ranked["tester"], neutral) >= 0.98
            if uses.start is None:
                # the twin was put to use moments later, so two near-equal scores may change places
                assert spearman(ranked["buyer"], ranked["twin"], range(number)) >= 0.99, "the same history"


def ask(client: Client, agent: str) -> Recalled:
    return client.recall(
        QUESTION, pools=[f"agent/{agent}"], agent=agent, perspective=AGENTS[agent], limit=99, budget_tokens=4000
    )


def is_whole(client: Client) -> bool:
    """Whether each agent finds all lines, in the same order."""
    orders = {tuple(answered(client, agent)) for agent in AGENTS}
    return len(orders) == 1 and len(orders.pop()) == len(BASE)


def answered(client: Client, agent: str) -> list[int]:
    """The lines of its memory, in the order in which an agent finds them."""
    return [BASE.index(hit.record.content) for hit in ask(client, agent).hits]


def put_to_use(client: Client, work: dict[str, list[int]]) -> None:
    """Each agent in turn asks, and uses the next of its lines: seconds between two agents would change strengths."""
    before = {agent: ask(client, agent).hits for agent in work}
    ids = {agent: {hit.record.content: hit.record.id for hit in hits} for agent, hits in before.items()}
    for lines in zip(*work.values(), strict=True):
        for agent, n in zip(work, lines, strict=True):
            assert client.feedback(ask(client, agent).recall, used=[ids[agent][BASE[n]]]).records == 1
    end = time.monotonic() + 90  # a use is written down at once and counted a moment later
    for agent, lines in work.items():
        while uses_of(ask(client, agent).hits) < uses_of(before[agent]) + len(lines) and time.monotonic() < end:
            time.sleep(0.02)


def uses_of(hits: tuple[Hit, ...]) -> int:
    return sum(hit.record.signal.access_count for hit in hits)


def spearman(one: list[int], other: list[int], items: range) -> float:
    """Of the places of these items in two rankings."""
    places = np.array([[[n for n in ranked if n in items].index(item) for item in items] for ranked in (one, other)])
    return float(np.corrcoef(places)[0, 1])
