"""The tokens of memd's keyword index: one way to cut text into terms, for documents and for questions.

Comes in: text in any language. Goes out: terms. Invariants: the same text always gives the same terms; identifiers are
kept whole and split; Chinese, Japanese and Korean become bigrams and Arabic loses its article and vowel marks, because
the index's own tokenizer finds nothing in them (P-22).
"""

from __future__ import annotations

import re
import unicodedata

import Stemmer

_HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_RUN = re.compile(rf"[{_HAN}]+|[^\W_{_HAN}][^\W{_HAN}]*(?:[-._/:][^\W_{_HAN}][^\W{_HAN}]*)*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+")
_ARABIC = re.compile(r"[\u0600-\u06ff]")
_MARKS = re.compile(r"[\u0610-\u061a\u064b-\u065f\u0670\u0640]")
_CJK = re.compile(rf"[{_HAN}]")

QUERY_CHARACTERS, QUERY_TERMS = 4000, 64
"""Of a question, as much as is searched: a pasted log must not hold the door."""

STOP = frozenset(
    """a about after all also am an and any are as at be been but by can could did do does for from get had has have he
    her him his how i if in into is it its just me my of on or our out she should so some than that the their them then
    there these they this to too up us was we were what when where which who whom whose why will with would you your
    anything something ever remember know tell""".split()
)


class Tokens:
    """A tokenizer with an English stemmer. Not for two threads at once: give each its own."""

    def __init__(self) -> None:
        self._stem = Stemmer.Stemmer("english", 10_000)

    def document(self, text: str) -> list[str]:
        """The terms of a document, in order, with repetitions."""
        terms: list[str] = []
        for match in _RUN.finditer(unicodedata.normalize("NFKC", text)):
            self._run(match.group(), terms)
        return terms

    def query(self, text: str) -> list[str]:
        """The distinct terms of a question, stop words left out unless nothing else is there."""
        terms = list(dict.fromkeys(self.document(text[:QUERY_CHARACTERS])))[:QUERY_TERMS]
        content = [term for term in terms if term not in STOP]
        return content or terms

    def _run(self, run: str, terms: list[str]) -> None:
        if _CJK.match(run):
            terms.extend(run[n : n + 2] for n in range(max(1, len(run) - 1)))
        elif _ARABIC.search(run):
            word = _MARKS.sub("", run)
            terms.append(word[2:] if word.startswith("ال") and len(word) > 4 else word)
        elif run.isascii():
            parts = _PART.findall(run)
            if len(parts) > 1:
                terms.append(run.lower())
            terms.extend(self._stemmed(part.lower()) for part in parts)
        else:
            terms.append(run.casefold())

    def _stemmed(self, word: str) -> str:
        return word if word in STOP else self._stem.stemWord(word)
