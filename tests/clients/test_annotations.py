"""The user plans the review of a record (R5), and notes what it teaches under a perspective (R7)."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memd.protocol.errors import InvalidRequest, NotFound
from tests.conftest import RunningDaemon


@pytest.fixture
def id(daemon: RunningDaemon, memd: Callable[..., Any]) -> str:
    return memd("remember", "I always sign release tags with the cello key.", "--wait", "--json").data["record"]["id"]


def test_a_review_has_the_cadence_and_the_condition_that_the_user_sets_R5(memd: Callable[..., Any], id: str) -> None:
    assert "reviewed as usual" in memd("review", id).text
    planned = memd("review", id, "--every", "90", "--if", "2 projects  deviate", "--json").data["record"]
    assert planned["review"]["cadence_days"] == 90
    assert planned["review"]["change_condition"] == "2 projects deviate"
    left = datetime.fromisoformat(planned["review"]["next"]) - datetime.now().astimezone()
    assert timedelta(days=89) < left <= timedelta(days=90)
    assert "every 90 days" in memd("show", id).text
    assert "2 projects deviate" in memd("why", id).text
    assert "review planned by the user" in memd("show", id, "--history").text

    only = memd("review", id, "--if", "", "--json").data["record"]["review"]
    assert only["cadence_days"] == 90 and not only["change_condition"]
    assert "reviewed as usual" in memd("review", id, "--every", "0").text
    assert not memd("show", id, "--json").data.get("review")


def test_a_learning_is_noted_shown_under_its_perspective_and_removed_R7(
    daemon: RunningDaemon, memd: Callable[..., Any], id: str
) -> None:
    noted = memd("learn", id, "-p", "security", "Rotate the key after each incident.")
    assert "security: Rotate the key after each incident." in noted.text
    assert "security: Rotate" in memd("show", id).text
    question = ("recall", "which key signs release tags")
    assert "for security: Rotate the key" in memd(*question, "--perspective", "security").text
    assert "Rotate" not in memd(*question).text
    with daemon.client() as client:
        assert client.learn(id, "security", "Rotate the key after each incident.").duplicate
    memd("learn", id, "-p", "security", "--remove")
    assert not memd("show", id, "--json").data["learnings"]
    assert "no perspective" in memd("learn", id, "some text").errors


def test_a_plan_for_a_record_that_is_gone_says_which_one_to_name_R5(
    daemon: RunningDaemon, memd: Callable[..., Any], id: str
) -> None:
    memd("reject", id)
    with daemon.client() as client:
        with pytest.raises(InvalidRequest, match="retired"):
            client.plan_review(id, every_days=3)
        with pytest.raises(NotFound):
            client.learn("zzzzzzzz", "security", "nothing")
        with pytest.raises(InvalidRequest):
            client.plan_review(id, every_days=-1)


def test_forgetting_a_record_removes_what_it_taught_T10(
    daemon: RunningDaemon, memd: Callable[..., Any], id: str
) -> None:
    memd("learn", id, "-p", "security", "Rotate the wolfram lever.")
    memd("forget", id, "--yes")
    daemon.settle()
    home = Path(daemon.environment["MEMD_HOME"])
    assert not any(b"wolfram" in path.read_bytes() for path in home.rglob("*") if path.is_file())
