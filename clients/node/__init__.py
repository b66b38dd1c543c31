"""The client for Node: plain JavaScript with types, no dependency. This module only says where it lies, and writes the
short list of secrets in JavaScript's regexes.

Comes in: `protocol/redact.py`. Goes out: `secrets.js`, which a test compares with the file.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from ...protocol.redact import CLUES, RULES
from ..shell import any_case

FOLDER = Path(__file__).parent
"""`npm install FOLDER` makes `import { Client } from "memd"` work."""

_HEAD = """// Written from protocol/redact.py by `python -m memd.clients.node`; a test compares the two.
// Each rule: its name, its regex, what a text must hold for it to hit (lower case).
export const RULES = [
"""


def secrets_js() -> str:
    """The content of `secrets.js`."""
    rows = [f"  [{json.dumps(name)}, /{_javascript(rule)}/gsu, {json.dumps(CLUES[name])}],\n" for name, rule in RULES]
    return _HEAD + "".join(rows) + "];\n"


def _javascript(pattern: str) -> str:
    """A rule as JavaScript with the flags g, s and u: no inline flags, no anchor at the end, `/` and quotes by rule."""
    pattern = re.sub(r"\(\?i:(.*?)\)(?=\(\?P|\[)", lambda match: f"(?:{any_case(match[1])})", pattern)
    pattern = pattern.replace(r"\Z", "$").replace("(?P<", "(?<").replace('\\"', '"').replace("\\'", "'")
    return pattern.replace("/", r"\/")
