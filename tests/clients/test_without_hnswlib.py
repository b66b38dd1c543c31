"""memd where hnswlib is not installed: it searches exactly, and the doctor says when that matters (Q2, U10)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memd.clients.cli import doctor
from tests.conftest import RunningDaemon

HIDDEN = 'import sys\n\nsys.modules["hnswlib"] = None\n'


@pytest.fixture
def home(home: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """A home whose daemon and commands can't import hnswlib."""
    folder = tmp_path / "hidden"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(HIDDEN)
    return {**home, "PYTHONPATH": str(folder)}


def searching(memd: Callable[..., Any]) -> dict[str, str]:
    (result,) = [row for row in memd("doctor", "--json").data["findings"] if row["name"] == "search"]
    return result


def test_a_daemon_without_hnswlib_remembers_and_recalls_and_the_doctor_says_so_U10(
    daemon: RunningDaemon, memd: Callable[..., Any]
) -> None:
    memd("remember", "--personal", "I sign release tags with the cello key.", "--wait")
    memd("remember", "--personal", "Lunch is at noon on Fridays.", "--wait")
    with daemon.client() as client:
        assert client.status().unembedded == 0
        assert client.recall("Which key is for a release?").hits[0].record.content.startswith("I sign release tags")
    result = searching(memd)
    assert result["state"] == "ok" and "without hnswlib" in result["message"] and "30,000 records" in result["message"]


def test_the_doctor_warns_of_a_pool_that_is_large_for_exact_search_U10(
    daemon: RunningDaemon, memd: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    memd("remember", "--personal", "I sign release tags with the cello key.", "--wait")
    monkeypatch.setattr(doctor, "EXACT_UP_TO", 0)
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    ((result, _),) = doctor._search(daemon.places)
    assert result.state == "warning" and "the pool personal has 2 records" in result.message
    assert "`hnsw`" in result.hint and "docs/INSTALL.md" in result.hint
