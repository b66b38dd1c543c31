"""The injection head: score how much a text in material looks like an order to an agent (W5, P-19). It stands beside
the rules of the scan, never in their place. A long text is read window by window, and the highest score counts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import numpy as np

from .network import Head

Place = Literal["user", "document", "tool"]
PLACES: tuple[Place, ...] = ("user", "document", "tool")

_LINK = re.compile(r"https?://\S+|\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+")


class InjectionJudge:
    """The network. Loading takes some 0.15 s and 30 MB; a short text takes about 4 ms on one thread."""

    def __init__(self, folder: Path | None = None, threads: int = 1) -> None:
        """Load the head of `folder` (default: the package's own weights). Raises `ModelMissing`."""
        self._head = Head("injection", folder, threads)

    def score(self, text: str, place: Place) -> float:
        """How much `text` looks like an order to an agent, in [0, 1]."""
        segment = PLACES.index(place)
        windows = self._head.tokens.windows(_LINK.sub("link", text))
        highest = max(float(self._head.run((ids, [segment] * len(ids)))[0]) for ids in windows)
        return float(1 / (1 + np.exp(-highest)))
