"""`python -m memd.clients.mcp [--read-only]`: run the server until its host closes the input."""

from __future__ import annotations

import sys

from .server import main

sys.exit(main(sys.argv[1:]))
