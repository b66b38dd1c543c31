"""Drop candidates that only repeat texts that memd gave to their session (W9, P-6): the same words in order, however
quoted, wrapped, escaped or marked up. A clause that adds another value or a negation is not an echo."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import msgspec

from .batch import Batch, Candidate, Rejection

STAGE = "scan"

FEWEST = 3  # Words that a text must have to be told from what anybody would say; characters, in scripts without spaces
FRAME = 12  # Words that an echo may have around it: "as I noted earlier, you said that"
_ESCAPE = re.compile(r"\\[nrt]|\\u00[0-9a-fA-F]{2}")
_WORD = re.compile(
    r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\U00020000-\U0002fa1f]|\d+|[^\W\d_]+"
)
# Words in the frame around a repeated text that may reverse it: then it is a statement, not an echo.
TURN = frozenset(
    "no not never longer anymore instead but however except unless although though wrong false outdated changed stop "
    "stopped switched nicht kein keine mehr sondern falsch 不 没 沒 别 ない ません 안 لا ليس لم".split()
)


def words_of(text: str) -> list[str]:
    """The words of a text in order, without case, marks and escapes; characters where a script has no spaces."""
    return _WORD.findall(unicodedata.normalize("NFKC", _ESCAPE.sub(" ", text)).casefold())


class EchoMatcher:
    """The texts that a session was given, ready to be compared."""

    def __init__(self, texts: Sequence[str]) -> None:
        folded = (words_of(text) for text in texts)
        distinct = {f" {' '.join(words)} " for words in folded if len(words) >= FEWEST}
        self._texts = sorted(distinct, key=len, reverse=True)

    def echoed(self, text: str) -> bool:
        """Whether `text` is a part of one of them, or holds some of them in a frame that adds nothing."""
        words = words_of(text)
        if len(words) < FEWEST or not self._texts:
            return False
        said = rest = f" {' '.join(words)} "
        if any(said in given for given in self._texts):
            return True
        for given in self._texts:
            rest = rest.replace(given, " | ")
        if "|" not in rest:
            return False
        pieces = (f" {' '.join(piece.split())} " for piece in rest.split("|"))
        own = [piece for piece in pieces if not any(piece in given for given in self._texts)]
        frame = [word for piece in own for word in piece.split() if not word.isdigit()]
        held = len(words) - len(rest.replace("|", "").split())
        return len(frame) <= min(FRAME, held + 2) and TURN.isdisjoint(frame)


def drop_echoes(batch: Batch) -> Batch:
    """The batch without echoes. A text that somebody asked to remember stays: reconcile decides whether it is new."""
    if not batch.given:
        return batch
    matchers = {document: EchoMatcher(given.texts) for document, given in batch.given.items()}
    own: list[Candidate] = []
    rejections: list[Rejection] = []
    for candidate in batch.candidates:
        matcher = matchers.get(candidate.item.captured.document)
        if matcher is not None and not candidate.explicit and matcher.echoed(candidate.quote):
            quote = candidate.quote[:500]
            rejections.append(Rejection(stage=STAGE, reason="recalled", seq=candidate.item.seq, quote=quote))
        else:
            own.append(candidate)
    return msgspec.structs.replace(batch, candidates=tuple(own), rejections=batch.rejections + tuple(rejections))
