"""How a record stands, as the commands tell it: what took its place, what is taken back, what nobody confirmed."""

import re
from pathlib import Path
from typing import Any

from memd.clients.python.client import remembering


def test_a_correction_tells_how_it_is_taken_back_P9(memd: Any, daemon: Any) -> None:
    old = memd("remember", "We deploy on Tuesdays.", "--json").data["record"]["id"]
    told = memd("correct", old, "We deploy on Thursdays.")
    *_, line = told.text.splitlines()
    new = told.text[:8]
    assert line == f"to undo this: memd undo memd:corrections/{old}"
    assert f"\nsource       memd:corrections/{old}" in memd("show", new).text
    assert "active again" in memd(*line.split()[4:]).text
    assert memd("show", old, "--json").data["status"] in ("active", "provisional")
    assert memd("show", new).code == 4
    edited = memd("edit", old, "We deploy on Fridays.").text.splitlines()[-1]
    assert edited == f"to undo this: memd undo memd:edits/{old}"
    assert "to undo this" not in memd("edit", old, "We deploy on Fridays.").text
    assert "earlier wording restored" in memd(*edited.split()[4:]).text
    assert memd("show", old, "--json").data["content"] == "We deploy on Tuesdays."
    memd("redo", *edited.split()[-1:])
    nothing = memd("undo", f"corrections/{old}").text
    assert nothing == "0 records hidden\n", "there is nothing to bring back"


def test_why_names_what_stands_in_the_place_of_a_repetition_R4(memd: Any, daemon: Any) -> None:
    first = memd("remember", "The staging database lives in Frankfurt.", "--json").data["record"]["id"]
    daemon.settle()
    again = memd("remember", "The staging database lives in Frankfurt!", "--json").data["record"]["id"]
    daemon.settle()
    told = memd("why", again)
    assert f"\nreplaced by:\n  {first[:8]}" in told.text and "current record" not in told.text
    new = memd("correct", first, "The staging database lives in Dublin.", "--json").data["record"]["id"]
    told = memd("why", again)
    assert f"\nreplaced by:\n  {first[:8]}" in told.text
    assert f"current record:\n  {new[:8]}" in told.text
    assert memd("why", again, "--json").data["held_by"]["id"] == new
    assert "current record" not in memd("why", first).text
    assert memd("history", first).text.endswith(f"replaced by {new[:8]}\n")


def test_what_nobody_confirmed_is_called_unconfirmed_everywhere_T8(memd: Any, daemon: Any) -> None:
    with daemon.client() as client:
        wish = remembering("The quokka build needs ninja.", host="mcp", role="assistant")
        id = client.remember(wish).record.id
    daemon.settle()
    listed = memd("list", "--status", "unconfirmed")
    assert listed.text == memd("list", "--status", "quarantined").text and f"{id[:8]}" in listed.text
    for command in (("list",), ("show", id), ("why", id), ("history", id), ("pools",), ("recall", "quokka build")):
        told = memd(*command).text
        assert "unconfirmed" in told and "quarantined" not in told, command
    assert memd("show", id, "--json").data["status"] == "quarantined"
    assert "unconfirmed" in memd("list", "--status", "nonsense").errors
    assert "unconfirmed" in memd("inbox", "--help").text
    memd("pin", id)
    assert "unconfirmed" not in memd("show", id).text


def test_a_screen_shows_no_code_of_a_folder_without_a_project_and_no_raw_time_U6(
    memd: Any, daemon: Any, tmp_path: Path
) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    folder = ("--cwd", str(plain))
    memd("remember", "The garden log lives in the blue shed since March 2026.", *folder)
    daemon.settle()
    id = memd("recall", "garden log", *folder, "--json").data["hits"][0]["record"]["id"]
    assert memd("pin", id).text.endswith(" · pinned · a folder without a project\n")
    memd("unpin", id)
    commands = [(name, id) for name in ("show", "why", "history")]
    commands += [("recall", "garden", *folder), ("scope", "why", str(plain)), ("maintain", "sleep"), ("pools",)]
    screens = {command: memd(*command).text for command in (*commands, ("status",))}
    for command, text in screens.items():
        assert "unbound/" not in text and not re.search(r"\d-\d\dT\d\d:", text), command
    assert "plain, a folder without a project" in screens["pools",]
    assert "true from 2026-03-01\n" in screens["history", id] and "unpinned" in screens["history", id]
    assert "true from 2026-03-01 (said so)" in screens["why", id] and "unpinned" in screens["why", id]
    assert re.search(r"distilled .* captures processed in total: 1\n", screens["status",])
    pool = screens["pools",].splitlines()[1].split()[0]
    assert memd("list", "--pool", pool, "--json").data["records"][0]["pool"] == f"unbound/{pool}"


def test_a_refused_value_says_what_is_wanted_U6(memd: Any, daemon: Any) -> None:
    for value in ("-3", "abc"):
        refused = memd("config", "set", "idle_s", value)
        assert refused.code == 2 and "idle_s must be a number, at least 0.01 and at most 10,000,000" in refused.errors
    assert "no such option: --jsn" in memd("config", "set", "idle_s", "--jsn").errors
    refused = memd("agent", "add", "a b/c")
    assert refused.code == 2 and "letters, digits or characters of _ . @ -" in refused.errors
