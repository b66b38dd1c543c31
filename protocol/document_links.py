"""Requests and replies about the documents that records are linked to (C3)."""

from __future__ import annotations

from typing import Literal

import msgspec

from .request_fields import Names, ScopedRequest

DocumentState = Literal["fresh", "moved", "changed", "gone", "out of reach"]
"""`fresh`: the part is as it was; `moved`: the same content is elsewhere; `changed`: the part was edited; `gone`: a
commit of the branch deleted the document; `out of reach`: memd cannot tell, for example on another branch."""


class ListLinks(ScopedRequest, tag="links", frozen=True, kw_only=True):
    """Tell whether the documents behind records have changed (C3): of the pools in scope, newest records first, or of
    the records `ids`. `stale`: only changed and gone ones."""

    ids: Names = ()
    stale: bool = False


class LinkState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A link of a record. `path`: absolute; `anchor`: the headings above the part, joined by " > "; `now`: the path
    where the document is now; `by`: evidence that the user named, or an imported Markdown file."""

    id: str
    description: str
    path: str
    state: DocumentState
    now: str
    by: Literal["evidence", "import"]
    anchor: str = ""


class LinkList(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `links`. `checked`: number of links that memd compared; `left`: number that it had no time for."""

    links: tuple[LinkState, ...]
    checked: int
    left: int = 0
