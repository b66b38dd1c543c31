"""The base of every operation: what all of them have in common.

Goes out: one class. Invariant: the envelope `{seq, at, kind, version}` is the log's header, so an operation has none.
"""

from __future__ import annotations

import msgspec


class Operation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", gc=False):
    """Base of what happened."""
