"""Read a clause in another language than English, which the networks do not know: its language, and what it says.

Two multinomial logistic regressions over hashed groups of letters, fitted by `models/recipes/train_other_languages.py`
on short authored clauses in ten languages, as people type them: without accents, without punctuation, with English
technical words. The file `rules/other_languages.npz` holds one row of weights for each hash.
"""

from __future__ import annotations

import math
import re
import unicodedata
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal, NamedTuple, get_args
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ..protocol.event import Trust
from . import words
from .selection import Tier

BUCKETS = 1 << 13
"""Hashes of groups of letters; a power of two."""

READ = 400
"""Characters of a text that are read."""

SURELY_ENGLISH = 2
"""Small words that only English has, from which a text is English."""

FOREIGN, FOREIGN_BESIDE = 0.1, 0.7
"""Most probability of English of a text in another language: by itself, and in a turn that is in another language."""

FEWEST_WORDS = 3
"""Words of a text from which its letters tell the language by themselves."""

BELIEVED, NOTED, NOTED_OF_AGENT = 0.65, 0.55, 0.65
"""The least worth of a user's clause in each tier, and of an agent's."""

LASTING = 0.45
"""The least worth of a believed clause that says "always" or "never"."""

OWN = 1.5
"""Odds by which clauses about the user are more frequent in sessions than among the clauses that the model learnt."""

Content = Literal["nothing", "decision", "preference", "fact", "identity", "approval"]
CONTENTS: tuple[Content, ...] = get_args(Content)
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_WORDS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]+|[^\W_]+|[?？]")
_CODE = re.compile(r"`[^`]*`|\S*[/\\_(){}=<>]\S*")
FILE = Path(__file__).parent / "rules" / "other_languages.npz"

Floats = NDArray[np.float32]
_ENGLISH = words.small_words("en").difference(*words.more_small_words())


class ContentReading(NamedTuple):
    """What a clause says: the probability of each content."""

    contents: dict[Content, float]

    @property
    def worth(self) -> float:
        """The probability that somebody asks for it later."""
        return 1 - self.contents["nothing"] - self.contents["approval"]

    @property
    def about_user(self) -> float:
        """The probability that it is about the user, if it is worth keeping."""
        user = OWN * (self.contents["preference"] + self.contents["identity"])
        project = self.contents["decision"] + self.contents["fact"]
        return user / max(user + project, 1e-9)

    @property
    def type(self) -> str:
        """The most likely type of a record."""
        worthy: tuple[Content, ...] = ("decision", "preference", "fact", "identity")
        return max(worthy, key=self.contents.__getitem__)


class _Model(NamedTuple):
    languages: tuple[str, ...]
    language: Floats
    content: Floats


@lru_cache(maxsize=4096)
def language(text: str, turn: str = "") -> str:
    """Return the ISO code of the language of a text: by its script and small words, else by its letters, and by those
    of the turn that it stands in."""
    told = words.language(text)
    spoken = frozenset(_WORDS.findall(text.lower()))
    if told != "en" or len(spoken & _ENGLISH) >= SURELY_ENGLISH:
        return told
    likely = language_probabilities(text)
    if likely["en"] < FOREIGN and len(spoken) >= FEWEST_WORDS:
        return max(likely, key=likely.__getitem__)
    return language(turn) if turn and turn != text and likely["en"] < FOREIGN_BESIDE else "en"


def is_unspaced(text: str) -> bool:
    """Whether a text is in a script without spaces between words."""
    return _UNSPACED.search(text) is not None


def is_read(code: str) -> bool:
    """Whether the model of what a clause says knows a language."""
    return code != "en" and code in _model().languages


def tier(reading: ContentReading, trust: Trust, *, lasting: bool = False) -> Tier:
    """Return the tier of a clause: an agent's is noted at most. `lasting`: it says "always" or "never"."""
    if trust != "user":
        return "noted" if reading.worth >= NOTED_OF_AGENT else ""
    return (
        "believed" if reading.worth >= (LASTING if lasting else BELIEVED) else "noted" if reading.worth >= NOTED else ""
    )


def language_probabilities(text: str) -> dict[str, float]:
    """Return the probability of each language that the model knows."""
    model = _model()
    return dict(zip(model.languages, _softmax(model.language, grams(_CODE.sub(" ", text))), strict=True))


@lru_cache(maxsize=4096)
def read(clause: str, trust: Trust) -> ContentReading:
    """Read a clause as its speaker's words."""
    likely = _softmax(_model().content, grams(clause), form(clause, trust))
    return ContentReading(dict(zip(CONTENTS, likely, strict=True)))


def grams(text: str) -> NDArray[np.intp]:
    """Return the hashes of a text's groups of letters, each once: of three and four letters within a word, of words
    and of two words; in a script without spaces of one to three letters."""
    found: set[str] = set()
    before = "^"
    for word in _WORDS.findall(_plain(text[:READ])):
        if _UNSPACED.match(word):
            found.update(word[at : at + size] for size in (1, 2, 3) for at in range(len(word) - size + 1))
            before = "^"
            continue
        marked = f" {word} "
        found.update(marked[at : at + size] for size in (3, 4) for at in range(len(marked) - size + 1))
        found.update((marked, f"{before} {word}"))
        before = word
    return np.array([crc32(part.encode()) & (BUCKETS - 1) for part in found], np.intp)


def form(clause: str, trust: Trust) -> Floats:
    """Return the features of a clause's form."""
    count = len(_UNSPACED.findall(clause)) / 2 + len(clause.split())
    parts = (1.0, trust != "user", math.log1p(count) / 3, "?" in clause[-2:] or "？" in clause[-2:], clause[-1:] == ":")
    return np.array(parts, np.float32)


FORMS = 5


def _plain(text: str) -> str:
    """`text` in small letters without the accents that people leave out, and with one sign for all digits."""
    bare = unicodedata.normalize("NFD", text.lower()).replace("đ", "d").replace("ß", "ss")
    return re.sub(r"\d", "0", "".join(letter for letter in bare if not unicodedata.combining(letter)))


def _softmax(weights: Floats, hashes: NDArray[np.intp], form: Floats | None = None) -> list[float]:
    logits = weights[hashes].sum(axis=0) / math.sqrt(max(1, len(hashes)))
    logits = logits + (weights[BUCKETS] if form is None else form @ weights[BUCKETS:])
    raised = np.exp(logits - logits.max())
    return (raised / raised.sum()).tolist()


@cache
def _model() -> _Model:
    with np.load(FILE) as file:
        scales = file["scales"]
        language = file["language"].astype(np.float32) * scales[0]
        content = file["content"].astype(np.float32) * scales[1]
        return _Model(tuple(str(file["languages"]).split()), language, content)
