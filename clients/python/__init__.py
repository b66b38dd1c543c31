"""The Python client of memd: `from memd.clients.python import Client`, or `AsyncClient`; both are imported late."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...protocol.errors import DaemonDown, DeadlineExceeded, MemdError
    from .async_client import AsyncClient
    from .client import Client

__all__ = ["AsyncClient", "Client", "DaemonDown", "DeadlineExceeded", "MemdError"]


def __getattr__(name: str) -> object:
    if name == "Client":
        from .client import Client

        return Client
    if name == "AsyncClient":
        from .async_client import AsyncClient

        return AsyncClient
    if name in __all__:
        from ...protocol import errors

        return getattr(errors, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
