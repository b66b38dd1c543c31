"""The plugin for Neovim 0.7 and later: pure Lua that speaks to the daemon itself. This module only says where it lies.

Goes out: a folder, to be put into Neovim's runtime path.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
