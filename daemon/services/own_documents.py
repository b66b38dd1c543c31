"""Documents of memd itself, such as those of persona blocks and skills: closed sessions that hold the user's words."""

from __future__ import annotations

from ...protocol.event import Origin
from ...protocol.operation import AnyOperation, SessionClosed, SessionOpened
from ..projections.stores import Stores


def opening(stores: Stores, document: str, at: str) -> list[AnyOperation]:
    """Return the operations that open and close a document of memd, none if it is known. `at`: RFC 3339."""
    if stores.sources.session(document) is not None:
        return []
    host, _, session = document.partition(":")
    origin = Origin(host=host, session=session, live=False)
    return [
        SessionOpened(document=document, origin=origin, project="", at=at),
        SessionClosed(document=document, at=at),
    ]
