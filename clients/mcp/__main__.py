"""`python -m memd.clients.mcp [--read-only] [--tools NAME]…`: run the server until its host closes the input."""

import sys

from .server import main

sys.exit(main(sys.argv[1:]))
