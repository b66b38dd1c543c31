"""The Python client of memd: `from memd.clients.python import Client`, or `AsyncClient`; both are imported late."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...protocol.errors import DaemonDown, DeadlineExceeded, MemdError
    from .async_client import AsyncClient
    from .client import Client

__all__ = ["AsyncClient", "Client", "DaemonDown", "DeadlineExceeded", "MemdError"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = {"Client": ".client", "AsyncClient": ".async_client"}.get(name, "...protocol.errors")
    return getattr(import_module(module, __package__), name)
