"""Settings are followed while memd runs, told with where they come from, and never break what worked (U6)."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.daemon.config import Config, parsed
from memd.daemon.forgetting_rules import Rules
from memd.daemon.services.settings.settings_service import AT_NEXT_START, Settings, toml
from memd.protocol.errors import BadConfig
from memd.protocol.event import Origin, Said
from memd.protocol.request import Remember

AT = "2026-03-04T18:30:00+01:00"


def until(test: Callable[[], Any], seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_change_of_the_file_is_followed_and_a_wrong_one_is_told_U6(daemon: Any, tmp_path: Path) -> None:
    file = daemon.places.config / "memd.toml"
    origin = Origin(host="h", session="s", cwd=str(tmp_path))
    with daemon.client() as client:
        file.write_text(f'ignored_folders = ["{tmp_path}"]\n')
        until(lambda: client.status().ignored)
        assert client.capture(origin, [Said(turn="1", at=AT, role="user", text="x")]).why == "ignored"
        file.write_text("ignored_folder = []\n")
        until(lambda: client.status().troubles)
        assert "'ignored_folders'" in client.status().troubles[0]
        assert client.status().ignored == (str(tmp_path),)  # what was in force stays
        file.unlink()
        until(lambda: not client.status().ignored)
        assert client.status().troubles == ()
        assert client.capture(origin, [Said(turn="1", at=AT, role="user", text="x")]).accepted == 1


def test_a_setting_is_written_checked_and_followed_and_comments_stay_U6(daemon: Any) -> None:
    file = daemon.places.config / "memd.toml"
    file.write_text("# mine\nidle_s = 30 # half a minute\n")
    with daemon.client() as client:
        client.put_setting("relevance_floor", "0.9")
        told = {each.name: each for each in client.put_setting("ignored_folders", "~/a:~/b").settings}
        assert told["ignored_folders"].value == '["~/a", "~/b"]' and told["idle_s"].source == "file"
        assert file.read_text().startswith("# mine\nidle_s = 30 # half a minute\n")
        assert file.stat().st_mode & 0o777 == 0o600
        before = file.read_text()
        for name, value in (("relevance_flor", "1"), ("relevance_floor", "2"), ("idle_s", "soon"), ("idle_s", "[1]")):
            with pytest.raises(BadConfig):
                client.put_setting(name, value)
        wanted = r"forgetting\.capacity must be a whole number, at least 0 and at most 1,000,000,000"
        with pytest.raises(BadConfig, match=wanted) as refused:
            client.put_setting("forgetting.capacity", "many")
        assert "memd changed nothing" in refused.value.hint and str(file) not in refused.value.hint
        assert file.read_text() == before
        told = {each.name: each for each in client.put_setting("ballast_mb", "3").settings}
        assert told["ballast_mb"].waits and told["ballast_mb"].value == "8.0"
        client.put_setting("forgetting.capacity", "50000")
        assert "[forgetting]\ncapacity = 50000" in file.read_text()
        with pytest.raises(BadConfig):
            client.put_setting("forgetting.capacty", "50000")
        with pytest.raises(BadConfig):
            client.put_setting("idle_s.x", "1")
        client.put_setting("archive_keep_by_pool", '{"personal" = {days = 7}}')
        told = {each.name: each for each in client.put_setting("relevance_floor", None).settings}
        assert told["relevance_floor"].source == "default" and '"personal"' in told["archive_keep_by_pool"].value


def test_what_a_belief_yields_to_follows_the_settings_U6_T12(daemon: Any) -> None:
    with daemon.client() as client:
        told = client.remember(
            Remember(text="I prefer tabs over spaces.", turn="1", at=AT, origin=Origin(host="h", session="s"))
        )
        id = told.record.id
        daemon.settle()
        assert client.why(id).changes_if
        client.put_setting("forgetting.change_sessions", "0")
        until(lambda: not client.why(id).changes_if)


def test_what_the_environment_says_counts_before_the_file_and_is_told(tmp_path: Path) -> None:
    settings = Settings(tmp_path, {"MEMD_IDLE_S": "7"})
    (one,) = (each for each in settings.list().settings if each.name == "idle_s")
    assert (one.value, one.source, one.default) == ("7.0", "environment", "20.0")
    with pytest.raises(BadConfig, match="MEMD_IDLE_S sets idle_s"):
        settings.put("idle_s", "9")


def test_every_setting_says_what_it_is_for_and_is_followed_or_named() -> None:
    settings = Settings(Path("/nowhere"), {}).list().settings
    assert [each.name for each in settings if not each.about or not each.label] == []
    entries = [(each.labels[name], about) for each in settings for name, about in each.entries.items()]
    assert [entry for entry in entries if not all(entry)] == []
    assert set(Config.__struct_fields__) >= AT_NEXT_START
    rules = next(each for each in settings if each.name == "forgetting")
    assert set(rules.entries) == set(Rules.__struct_fields__) and "(T6)" not in rules.entries["floor"]


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "idle_s": st.floats(0.01, 1e6),
            "backup_keep": st.integers(0, 1000),
            "ignored_folders": st.lists(st.text(min_size=1, max_size=20).filter(str.isprintable)),
        },
    )
)
def test_a_value_reads_back_as_it_was_told(values: dict[str, Any]) -> None:
    import tomllib

    config = parsed(values, Path("memd.toml"))
    for name in values:
        again = parsed(tomllib.loads(f"{name} = {toml(getattr(config, name))}"), Path("memd.toml"))
        assert getattr(again, name) == getattr(config, name)


def test_a_file_that_can_not_be_read_is_told(tmp_path: Path) -> None:
    settings = Settings(tmp_path, {})
    (tmp_path / "memd.toml").write_bytes(b"\xff")
    assert settings.refresh() is None and "does not parse" in settings.problem
    os.unlink(tmp_path / "memd.toml")
    assert settings.refresh() is None and settings.problem == ""
