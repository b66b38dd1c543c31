"""`python -m memd.clients.mcp [--read-only]`: the server on standard input and output, until its host hangs up."""

from __future__ import annotations

import sys

from .server import main

sys.exit(main(sys.argv[1:]))
