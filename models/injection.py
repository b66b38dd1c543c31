"""The injection head: score how much a text in material looks like an order to an agent (W5, P-19). A long text is read
window by window, and the highest score counts."""

from __future__ import annotations

import re
from typing import Literal

import numpy as np

from .network import Head

Place = Literal["user", "document", "tool"]
PLACES: tuple[Place, ...] = ("user", "document", "tool")

_LINK = re.compile(r"https?://\S+|\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+")


class InjectionJudge(Head):
    """The network. A short text takes about 4 ms on one thread."""

    HEAD = "injection"

    def score(self, text: str, place: Place) -> float:
        """How much `text` looks like an order to an agent, in [0, 1]."""
        segment = PLACES.index(place)
        windows = self.tokens.windows(_LINK.sub("link", text))
        highest = max(float(self._read((ids, [segment] * len(ids)))[0]) for ids in windows)
        return float(1 / (1 + np.exp(-highest)))
