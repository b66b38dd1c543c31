"""The client for Node: plain JavaScript with types, no dependency.

`python -m memd.clients.node` writes its generated files: `secrets.js` (the short list of secrets in JavaScript's
regexes), `requests.js` (the methods) and `requests.d.ts` (their types). A test compares them with the protocol.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
"""`npm install FOLDER` makes `import { Client } from "memd"` work."""
