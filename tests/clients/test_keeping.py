"""`du`, `restore-backup`: every byte is in one part; what a restore may bring back is told (T10, P-13, P-18)."""

from pathlib import Path
from typing import Any


def test_du_accounts_for_every_file_of_the_memory(memd: Any, daemon: Any, tmp_path: Path) -> None:
    with daemon.client() as client:
        for number in range(20):
            client.remember(f"Lamp {number} stands in room {number}.")
    daemon.settle()
    assert memd("backup").code == 0
    told = memd("du", "--json").data
    parts = {part["name"]: part for part in told["parts"]}
    assert sum(part["size_bytes"] for part in parts.values()) == told["total_bytes"]
    assert {"journal", "archive", "backups"} <= set(parts)
    assert all(part["size_bytes"] > 0 for name, part in parts.items() if name in {"journal", "archive", "backups"})
    home = Path(daemon.environment["MEMD_HOME"])
    on_disk = sum(
        file.stat().st_blocks * 512
        for folder in ("data", "state")
        for file in (home / folder).rglob("*")
        if file.is_file()
    )
    assert abs(told["total_bytes"] - on_disk) <= 0.1 * on_disk + 1_000_000
    assert "in total" in memd("du").text


def test_a_restore_says_that_secrets_may_be_back_P18(memd: Any, daemon: Any) -> None:
    with daemon.client() as client:
        client.remember("I prefer tabs.")
    assert memd("backup").code == 0
    daemon.terminate()
    told = memd("restore-backup", "--yes")
    assert told.code == 0 and told.errors.endswith("are back: once memd is up, run `memd scan`\n")
    (warning,) = memd("restore-backup", "--yes", "--json").json["warnings"]
    assert "run `memd scan`" in warning


def test_a_backup_of_an_older_layout_says_so_in_the_list_P13(memd: Any, daemon: Any) -> None:
    backups = Path(daemon.environment["MEMD_HOME"]) / "data" / "backups"
    for name in ("journal", "archive"):  # never opened for the list: what is damaged would end the daemon
        (backups / "layout-1-2" / name).mkdir(parents=True)
        (backups / "layout-1-2" / name / "data.mdb").write_bytes(bytes(50))
    assert memd("backup").code == 0
    older, newer = memd("backup", "--list").text.splitlines()
    assert older.startswith("layout-1-2") and older.endswith("100 bytes, saved by an upgrade, layout 1")
    assert "layout" not in newer and "by memd" in newer
    told = [(each["layout"], each["current"]) for each in memd("backup", "--list", "--json").data["backups"]]
    assert told[0] == (1, False) and told[1][1] is True
    daemon.terminate()
    for command in ("backup", "restore-backup"):
        assert memd(command, "--list").text.splitlines()[0].startswith("layout-1-2"), "the daemon need not run"
    missing = memd("restore-backup", "--list", "--from", str(backups / "nowhere"))
    assert missing.code == 4 and "there is no folder" in missing.errors


def test_a_restored_memory_is_sound_before_its_first_start_U3(memd: Any, daemon: Any) -> None:
    with daemon.client() as client:
        client.remember("I prefer tabs.")
    assert memd("backup").code == 0
    daemon.terminate()
    assert memd("restore-backup", "--yes").code == 0
    for _ in range(2):
        told = memd("verify", "--json")
        assert told.code == 0 and told.data["records"] == 1 and told.data["quotes"] == 1, told
        assert told.data["verdict"].endswith("at the next start.")
    daemon.start()
    assert "next start" not in memd("verify").text
