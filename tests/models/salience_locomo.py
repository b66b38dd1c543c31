"""How many of the turns that answer LoCoMo's questions are among those held most salient (for measuring only).

Comes in: conversations in LoCoMo's own form, that you bring. Goes out: the share of evidence turns of categories 1-4
that lies in the best 40, 45 and 60 % of each conversation's turns, by the distiller as it ships, and by ridge
regressions that are fitted on the other conversations and thrown away: what could be had in this domain.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from memd.models.distiller import Distiller
from memd.models.trunk import Trunk

SHARES = (0.40, 0.45, 0.60)
_NAME = re.compile(r"(?<!^)(?<![.!?] )\b[A-Z][a-z]+")
_NUMBER = re.compile(r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten)\b", re.IGNORECASE)
_TIME = re.compile(
    r"\b(?:yesterday|today|tomorrow|last|next|ago|week(?:end)?|month|year|day|morning|night|summer|winter|spring|fall|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august|september|october|"
    r"november|december|recently|since)\b",
    re.IGNORECASE,
)
_MINE = re.compile(r"\b(?:I|my|we|our|me|mine)\b")
_YOURS = re.compile(r"\byou(?:r|rs)?\b", re.IGNORECASE)
_REACTION = re.compile(r"(?:wow|thanks|that's|sounds|yeah|great|hey|hi|awesome|cool|sure|bye|glad)\b", re.IGNORECASE)


class Told(NamedTuple):
    """A conversation: turns as text, features (n x k), what the distiller says of each, and which are evidence."""

    features: np.ndarray
    shipped: np.ndarray
    evidence: np.ndarray


def surface(text: str) -> list[float]:
    words = text.split()
    counts = (text.count("?"), text.count("!"), text.count(","), len(re.split(r"(?<=[.!?])\s", text)))
    found = [len(pattern.findall(text)) for pattern in (_NAME, _NUMBER, _TIME, _MINE, _YOURS)]
    flags = (text.rstrip().endswith("?"), bool(_REACTION.match(text)), "[image" in text)
    return [len(words), float(np.log1p(len(words))), *counts, *found, *map(float, flags)]


def told(path: Path) -> list[Told]:
    trunk, distiller = Trunk(), Distiller()
    out: list[Told] = []
    for whole in json.loads(path.read_text(encoding="utf-8")):
        turns = [turn for part in whole["conversation"].values() if isinstance(part, list) for turn in part]
        texts = [
            turn["text"] + (f" [image: {turn['blip_caption']}]" if "blip_caption" in turn else "") for turn in turns
        ]
        cited = {
            one
            for asked in whole["qa"]
            if asked["category"] in (1, 2, 3, 4)
            for evidence in asked["evidence"]
            for one in re.findall(r"D\d+:\d+", evidence)
        }
        vectors = trunk.embed([f"{turn['speaker']}: {text}" for turn, text in zip(turns, texts, strict=True)])
        read = [distiller.read(text, "other") for text in texts]
        pooled = np.array([one.pooled for one in read])
        salience = np.array([one.salience for one in read])
        plain = np.array([surface(text) for text in texts])
        plain = (plain - plain.mean(axis=0)) / (plain.std(axis=0) + 1e-6)
        pooled = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
        near = np.hstack([plain, salience[:, None]])
        before, after = np.roll(vectors, 1, axis=0), np.roll(vectors, -1, axis=0)
        sides = np.hstack([np.roll(near, 1, axis=0), np.roll(near, -1, axis=0)])
        kin = np.array([(vectors * before).sum(axis=1), (vectors * after).sum(axis=1), vectors @ vectors.mean(axis=0)])
        features = np.hstack([4 * vectors, 4 * before, 4 * after, 4 * pooled, near, sides, 4 * kin.T])
        out.append(Told(features, salience, np.array([turn["dia_id"] in cited for turn in turns])))
    return out


def kept(conversations: list[Told], scores: Callable[[int], np.ndarray]) -> list[float]:
    """Share of evidence among the best of each conversation, in percent, at each of `SHARES`."""
    hit, total = np.zeros(len(SHARES)), 0
    for at, one in enumerate(conversations):
        order = np.argsort(-scores(at))
        total += one.evidence.sum()
        hit += [one.evidence[order[: round(share * len(order))]].sum() for share in SHARES]
    return [round(float(value), 1) for value in 100 * hit / total]


def fitted(conversations: list[Told], at: int, strength: float) -> np.ndarray:
    """Scores of conversation `at` by a ridge regression over the others."""
    x = np.vstack([one.features for i, one in enumerate(conversations) if i != at])
    y = np.hstack([one.evidence for i, one in enumerate(conversations) if i != at]).astype(float)
    mean = x.mean(axis=0)
    weights = np.linalg.solve((x - mean).T @ (x - mean) + strength * np.eye(x.shape[1]), (x - mean).T @ (y - y.mean()))
    return (conversations[at].features - mean) @ weights


def measure(path: Path) -> None:
    conversations = told(path)
    print(f"evidence turns kept at {SHARES} of the turns, in %, {sum(len(c.evidence) for c in conversations)} turns")
    print(f"  the distiller as it ships: {kept(conversations, lambda at: conversations[at].shipped)}")
    for strength in (300.0, 1000.0, 3000.0):
        found = kept(conversations, lambda at, s=strength: fitted(conversations, at, s))
        print(f"  ridge {strength:.0f}, fitted on the other conversations: {found}", flush=True)
