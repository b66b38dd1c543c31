"""The extension for VS Code, in JavaScript, over the client for Node. `vsix_file.py` packs it; npm checks it."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
