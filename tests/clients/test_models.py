"""`memd model`: says what searches, refuses what is no model, changes it with and without a daemon (P-14)."""

from pathlib import Path
from typing import Any

from memd.models import registry
from tests.models.second_model import make_model


def test_without_a_daemon_a_model_is_listed_verified_and_chosen_P14(memd: Any, tmp_path: Path) -> None:
    second = make_model(tmp_path / "second", "second", 128)
    assert [each["searches"] for each in memd("model", "list", "--json").data["models"]] == [True]
    assert memd("model", "verify", "--json").data["intact"]
    assert memd("model", "verify", str(second)).text.startswith("intact: 3 files")
    told = memd("model", "use", str(second))
    assert told.code == 0 and "second@" in told.text and "selected" in told.text
    assert memd("model", "list", "--json").data["models"][1]["folder"] == str(second)
    (second / "table.npy").write_bytes(b"")
    told = memd("model", "verify")
    assert told.code == 6 and "table.npy: sha256" in told.text
    assert memd("model", "verify", "default").code == 0
    assert memd("model", "use", str(second)).code == 6


def test_with_a_daemon_the_change_is_told_and_a_wrong_folder_leaves_all_as_it_is(
    memd: Any, daemon: Any, tmp_path: Path
) -> None:
    told = memd("model", "use", str(tmp_path))
    assert told.code == 6 and "manifest.json" in told.errors and "hint:" in told.errors
    second = make_model(tmp_path / "second", "second", 128)
    with daemon.client() as client:
        client.remember("The printer hangs on Fridays.")
    daemon.settle()
    told = memd("model", "use", str(second))
    assert told.code == 0 and "1 of 1 record to embed" in told.text
    assert registry.info(second).id in memd("model", "list").text
    told = memd("model", "use", "default", "--json")
    assert told.data["id"] == registry.info().id and told.data["to_embed"] == 0
