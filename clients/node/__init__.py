"""The client for Node: plain JavaScript with types, no dependency. `python -m memd.clients.node` writes `requests.js`
and `requests.d.ts` from the protocol."""

from pathlib import Path

FOLDER = Path(__file__).parent  # `npm install FOLDER` makes `import { Client } from "memd"` work
