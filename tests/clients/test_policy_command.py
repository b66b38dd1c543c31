"""`memd policy` and `memd context` in a project with a policy and a lens (G8, P6, Q11), as a user meets them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from memd.daemon.projections.stores import Stores
from memd.daemon.world import real_world
from memd.models import registry
from memd.protocol.operation import PiTrusted
from memd.protocol.policy import LENS_FILE, POLICY_FILE
from tests.conftest import RunningDaemon

LOOSE = "version: 1\nlayers: {L2: {max_records: 500}, L3: {max_record: 9}}\nreview_policy: {stable_days: 60}\n"


@pytest.fixture
def project(daemon: RunningDaemon, memd: Any, tmp_path: Path) -> Path:
    """A trusted project that memd knows, with a policy file."""
    folder = tmp_path / "orchard"
    author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), *author, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    told = memd(
        "remember", "--project", "Our deploys always go out on Tuesdays.", "--cwd", str(folder), "--wait", "--json"
    )
    pool = told.data["record"]["pool"]
    memd("pin", told.data["record"]["id"])
    daemon.terminate()
    stores = Stores(daemon.places.data, real_world(), registry.info())
    stores.commit([PiTrusted(pool=pool)])
    stores.close()
    (folder / ".pi").mkdir()
    (folder / POLICY_FILE).write_text(LOOSE)
    daemon.start()
    return folder


def test_a_looser_rule_waits_until_the_user_accepts_it_G8(project: Path, memd: Any) -> None:
    at = ("--cwd", str(project))
    shown = memd("policy", "show", *at)
    assert (
        shown.code == 0
        and "300 → 500" in shown.text
        and "did you mean layers.L3.max_records_per_project?" in "".join(shown.text.replace("\n", " ").split("  "))
    )
    assert "layers.L2.max_records: 300" in shown.text and "review_policy.stable_days: 60" in shown.text
    assert "loosens 1 rule" in memd("status").text
    refused = memd("policy", "accept", *at)
    assert refused.code == 7 and "layers.L2.max_records" in refused.errors and "--yes" in refused.errors
    assert memd("policy", "show", *at, "--json").data["policy"]["layers"]["L2"]["max_records"] == 300
    assert memd("policy", "accept", *at, "--yes").code == 0
    assert memd("policy", "show", *at, "--json").data["policy"]["layers"]["L2"]["max_records"] == 500
    assert "loosens" not in memd("status").text
    assert "nothing waits" in memd("policy", "accept", *at).text
    assert "orchard" in memd("policy", "show", "--project", "orchard").text


def test_a_check_tells_what_memd_would_say_to_a_file(project: Path, memd: Any, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("version: 1\nlayers: {L2: {max_records: many}}\n")
    wrong = memd("policy", "check", str(file), "--cwd", str(project))
    assert (wrong.code, wrong.errors) == (1, "") and "layers.L2.max_records" in wrong.text
    assert "layers.L2.max_records" in memd("policy", "check", str(file), "--json").data["problem"]
    file.write_text(LOOSE)
    assert "300 → 500" in memd("policy", "check", str(file), "--cwd", str(project)).text
    assert memd("policy", "check", str(tmp_path / "missing")).code == 2


def test_outside_of_a_trusted_project_the_default_holds(daemon: RunningDaemon, memd: Any, tmp_path: Path) -> None:
    shown = memd("policy", "show", "--cwd", str(tmp_path))
    assert shown.code == 0 and "the default" in shown.text and "no project" in shown.text
    assert memd("policy", "accept", "--cwd", str(tmp_path)).code == 0


def test_the_context_of_a_part_of_a_repository_P6(project: Path, memd: Any) -> None:
    part = project / "services" / "alpha"
    part.mkdir(parents=True)
    (part / LENS_FILE).write_text("project_slug: alpha\nmemory_scope: {L2_tags: [architecture]}\n")
    assert "deploys" not in memd("context", "--cwd", str(part)).text.replace("# Context of alpha", "")
    assert "deploys" in memd("context", "--cwd", str(project)).text
    (part / LENS_FILE).write_text("project_slug: alpha\nmemory_scope: {L2_tags: [deploys, workflow]}\n")
    package = memd("context", "--cwd", str(part), "--json").data
    assert package["project"] == "alpha" and "# Context of alpha" in package["context"]
    assert memd("context", "--cwd", str(part), "--out", str(part / "runtime")).code == 0
    (chosen,) = json.loads((part / "runtime" / "selected_memory.json").read_text())
    assert set(chosen) == {"record", "salience", "why"} and chosen["record"]["scope"] == {"type": "project"}
    assert "quote" not in json.dumps(chosen) and chosen["record"]["evidence"][0]["type"] == "user"
