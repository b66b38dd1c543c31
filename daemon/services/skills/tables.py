"""Reads the tables of words of this folder."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def table(name: str) -> dict[str, Any]:
    """Return the contents of `<name>.toml`."""
    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8"))
