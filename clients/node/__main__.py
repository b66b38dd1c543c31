"""`python -m memd.clients.node`: write `secrets.js` anew."""

from __future__ import annotations

from . import FOLDER, secrets_js

(FOLDER / "secrets.js").write_text(secrets_js(), encoding="utf-8")
