"""`memd map`: the whole, and what is near a thing (U4, U8)."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import RunningDaemon

TEXTS = ("I brew tea in a Stagg kettle.", "My Stagg kettle is made of `copper`.", "I polish `copper` on Sundays.")


@pytest.fixture
def kettle(daemon: RunningDaemon, memd: Callable[..., Any]) -> Callable[..., Any]:
    for text in TEXTS:
        memd("remember", text, "--wait")
    daemon.settle()
    return memd


def test_topics_of_all_pools_and_the_neighbours_of_a_thing_U4(kettle: Callable[..., Any]) -> None:
    whole = kettle("map").text.splitlines()
    assert whole[0] == "personal · 4 records" and {"  Stagg · 2 records", "  copper · 2 records"} <= set(whole)
    near = kettle("map", "copper", "--hops", "1").text
    assert near.startswith("copper · 2 records") and "polish" in near and "brew" not in near
    assert "brew" in kettle("map", "copper", "--hops", "3").text
    record = kettle("map", "copper", "--json").data["marks"][1]
    assert record["kind"] == "record" and record["status"] == "active"
    assert kettle("map", record["id"][:8], "--hops", "1").text.startswith(record["id"][:8])


def test_what_is_not_there_and_what_was_not_yet_there_Q12(kettle: Callable[..., Any]) -> None:
    unknown = kettle("map", "violin")
    assert unknown.code == 4 and "no record here names 'violin'" in unknown.errors
    assert kettle("map", "--believed-at", "2020-01-01").text == "there is no record here\n"


def test_how_much_was_learned_when_Q12(kettle: Callable[..., Any]) -> None:
    told = kettle("rhythm", "--clock", "system", "--buckets", "2", "--beside", "2020-01-01")
    lines = told.text.splitlines()
    assert told.code == 0, told.errors
    assert len(lines) == 4 and lines[2] == "change before: none" and "none" not in lines[3]
    buckets = kettle("rhythm", "--json").data["buckets"]
    assert sum(bucket["learnt"] for bucket in buckets) == 4 and len(buckets) == 20
    assert kettle("rhythm", "--since", "2026-02-02", "--until", "2026-01-01").code == 2


def test_what_an_agent_would_have_received_then_Q12(kettle: Callable[..., Any]) -> None:
    assert "Stagg" in kettle("profile").text
    past = kettle("profile", "--believed-at", "2020-01-01")
    assert past.code == 0 and past.text.startswith("No record belonged into every turn then.")
    assert "Stagg" in kettle("profile", "--believed-at", "2999-01-01").text
    assert kettle("profile", "--as-of", "2020-01-01", "--json").data["due"] is False
    assert "Stagg" not in kettle("context", "--believed-at", "2020-01-01").text
