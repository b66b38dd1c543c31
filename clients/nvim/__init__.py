"""The plugin for Neovim 0.7 and later, in Lua. `FOLDER` belongs into Neovim's runtime path."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
