"""No telemetry, no download, no file outside of memd's own folders (P-15, P-27)."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
from memd.models.trunk import Trunk
assert Trunk().embed(["hello"]).shape == (1, 384)
"""


def test_loading_the_model_leaves_nothing_behind_P27(tmp_path: Path) -> None:
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    for folder in (home, temporary):
        folder.mkdir()
    quiet = {key: value for key, value in os.environ.items() if key != "ORT_DISABLE_TELEMETRY"}
    environment = {**quiet, "HOME": str(home), "TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"}
    for key in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        environment.pop(key, None)
    subprocess.run([sys.executable, "-c", SCRIPT], env=environment, check=True)
    assert sorted(home.rglob("*")) == sorted(temporary.rglob("*")) == []
