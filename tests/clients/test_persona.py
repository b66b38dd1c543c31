"""Persona blocks: set by the user, in every profile, in no search (R1)."""

from typing import Any

from tests.conftest import RunningDaemon

TONE = "Answer briefly, and never with exclamation marks."


def test_a_block_is_in_the_profile_and_in_no_search_R1(daemon: RunningDaemon, memd: Any) -> None:
    assert "no block yet" in memd("persona", "show").text
    first = memd("persona", "set", "tone", "Answer briefly.", "--json").data["record"]
    assert (first["kind"], first["layer"], first["pinned"]) == ("persona", "L1", True)
    added = memd("persona", "add", "tone", "No exclamation marks.", "--json").data["record"]
    assert added["content"] == "Answer briefly. No exclamation marks." and added["supersedes"] == [first["id"]]
    set_ = memd("persona", "set", "tone", TONE, "--json").data["record"]
    memd("persona", "set", "identity", "I am Ada, a backend engineer in Zurich.")
    daemon.settle()
    profile = memd("profile").text
    assert "## Identity and tone" in profile and TONE in profile and "Ada" in profile
    for question in (TONE, "exclamation marks", "in which tone to answer"):
        found = memd("recall", question, "--json").data
        assert not found["hits"] and not found["turns"]
    assert "set the block anew" in memd("why", first["id"]).text or memd("show", first["id"]).text.count("retired")
    assert TONE in memd("persona", "show").text
    assert memd("persona", "set", "tone", TONE, "--json").data["duplicate"]
    assert "removed" in memd("persona", "set", "tone", "").text
    assert TONE not in memd("profile").text
    assert memd("persona", "set", "tone", "").code == 2
    assert memd("persona", "set", "tone", "x " * 400).code == 2
    assert memd("forget", set_["id"], "--yes").code == 0
    left = [path for path in daemon.places.data.rglob("*") if path.is_file() and TONE.encode() in path.read_bytes()]
    assert left == []


def test_an_agent_has_blocks_of_its_own_R1_P5(daemon: RunningDaemon, memd: Any) -> None:
    assert memd("persona", "set", "tone", TONE, "--agent", "reviewer").code == 2
    memd("agent", "add", "reviewer")
    memd("persona", "set", "tone", TONE, "--agent", "reviewer")
    assert TONE in memd("persona", "show", "--agent", "reviewer").text
    assert TONE in memd("profile", "--agent", "reviewer").text
    assert TONE not in memd("profile").text
    assert daemon.process is not None
