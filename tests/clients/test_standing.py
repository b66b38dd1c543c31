"""How a record stands, as the commands tell it: what took its place, what is taken back, what nobody confirmed."""

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
