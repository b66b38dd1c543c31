"""The tokenizer of the keyword index, for documents and questions in any language.

Invariants: the same text gives the same terms; identifiers are kept whole and split; Chinese, Japanese and Korean
become bigrams, Arabic loses article, prepositions and vowel marks, Vietnamese is found without its marks too, other
languages lose their endings, because the index's own tokenizer does not handle them (P-22).
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import Stemmer

from ...stages.words import language, small_words

_HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_RUN = re.compile(rf"[{_HAN}]+|[^\W_{_HAN}][^\W{_HAN}]*(?:[-._/:][^\W_{_HAN}][^\W{_HAN}]*)*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+")
_ARABIC = re.compile(r"[\u0600-\u06ff]")
_MARKS = re.compile(r"[\u0610-\u061a\u064b-\u065f\u0670\u0640]")
_VIETNAMESE = re.compile(r"[\u1ea0-\u1ef9ơưđ]", re.IGNORECASE)
_CJK = re.compile(rf"[{_HAN}]")

QUERY_CHARACTERS, QUERY_TERMS = 4000, 64
"""Limits of a question, so that a pasted log does not block the request server."""

STOP = frozenset(
    """a about after all also am an and any are as at be been but by can could did do does for from get had has have he
    her him his how i if in into is it its just me my of on or our out she should so some than that the their them then
    there these they this to too up us was we were what when where which who whom whose why will with would you your
    anything something ever remember know tell""".split()
)


STEMMERS = {
    "da": "danish",
    "de": "german",
    "el": "greek",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "hi": "hindi",
    "it": "italian",
    "nl": "dutch",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ru": "russian",
    "sv": "swedish",
    "tr": "turkish",
}
"""Languages with a stemmer beside the English one, by the code of `stages.words.language`."""

COMPOUNDING = frozenset(("da", "de", "fi", "nl", "no", "sv"))
"""Languages with compound words: start and end of a long stem are terms too."""

LONG_STEM, PART = 6, 5

RUNS = 8192
"""Words whose terms are cached."""


def without_tones(word: str) -> str:
    """Return a Vietnamese word as people type it without its marks."""
    bare = unicodedata.normalize("NFD", word.replace("đ", "d"))
    return "".join(letter for letter in bare if not unicodedata.combining(letter))


_HEADS = ("وال", "بال", "كال", "فال", "لل", "ال")
_TAILS = ("ات", "ون", "ين", "ان", "ها", "ية", "ه", "ة", "ي", "ا")


def arabic_stem(word: str) -> str:
    """Strip article, attached prepositions and plain endings from an Arabic word (Larkey et al. 2002)."""
    word = _MARKS.sub("", word).replace("أ", "ا").replace("إ", "ا").replace("آ", "ا").replace("ى", "ي")
    for head in _HEADS:
        if word.startswith(head) and len(word) - len(head) >= 3:
            word = word[len(head) :]
            break
    else:
        if word[0] in "وفبلك" and len(word) >= 5:
            word = word[1:]
    for tail in _TAILS:
        if word.endswith(tail) and len(word) - len(tail) >= 3:
            return word[: -len(tail)]
    return word


class TermTokens:
    """A tokenizer with stemmers; not thread-safe.

    A text in another language than English gives its own stems and the English ones, a question only its own: so a
    question whose language is not detected still matches.
    """

    def __init__(self) -> None:
        self._english = Stemmer.Stemmer("english", 10_000)
        self._stemmers: dict[str, Stemmer.Stemmer] = {}
        self._english_run = lru_cache(RUNS)(self._of_english)

    def document(self, text: str, code: str = "") -> list[str]:
        """Return the terms of a document, in order, with repetitions. `code`: its language, where that is known better
        than from the text itself, such as for one line of a page."""
        code = code or language(text)
        return self._terms(text, self._stemmer(code), both=True, compounds=code in COMPOUNDING)

    def query(self, text: str) -> list[str]:
        """Return the distinct terms of a question, without stop words unless it has no others."""
        text = text[:QUERY_CHARACTERS]
        code = language(text)
        stemmer = self._stemmer(code)
        terms = list(dict.fromkeys(self._terms(text, stemmer, both=False, compounds=code in COMPOUNDING)))[:QUERY_TERMS]
        small = STOP if stemmer is None else {stemmer.stemWord(word) for word in small_words(code)} | small_words(code)
        content = [term for term in terms if term not in small]
        return content or terms

    def _stemmer(self, code: str) -> Stemmer.Stemmer | None:
        if code not in STEMMERS:
            return None
        if code not in self._stemmers:
            self._stemmers[code] = Stemmer.Stemmer(STEMMERS[code], 10_000)
        return self._stemmers[code]

    def _terms(self, text: str, own: Stemmer.Stemmer | None, *, both: bool, compounds: bool) -> list[str]:
        terms: list[str] = []
        is_vietnamese = _VIETNAMESE.search(text) is not None
        for match in _RUN.finditer(unicodedata.normalize("NFKC", text)):
            start = len(terms)
            if own is None:
                terms += self._english_run(match.group())
            else:
                self._run(match.group(), own, both, terms)
            if is_vietnamese and (bare := without_tones(terms[-1])) != terms[-1]:
                terms.append(bare)
            if compounds:
                for stem in dict.fromkeys(term for term in terms[start:] if len(term) >= LONG_STEM):
                    terms += (f"{stem[:PART]}-", f"-{stem[-PART:]}")
        return terms

    def _of_english(self, run: str) -> tuple[str, ...]:
        terms: list[str] = []
        self._run(run, None, False, terms)
        return tuple(terms)

    def _run(self, run: str, own: Stemmer.Stemmer | None, both: bool, terms: list[str]) -> None:
        if _CJK.match(run):
            terms.extend(run[n : n + 2] for n in range(max(1, len(run) - 1)))
        elif _ARABIC.search(run):
            terms.append(arabic_stem(run))
        elif run.isascii():
            parts = _PART.findall(run)
            if len(parts) > 1:
                terms.append(run.lower())
            for part in parts:
                word = part.lower()
                english = self._stemmed(word)
                stem = english if own is None else own.stemWord(word)
                terms.append(stem)
                if both and stem != english:
                    terms.append(english)
        else:
            word = run.casefold()
            terms.append(word if own is None else own.stemWord(word))
            if both and terms[-1] != word:
                terms.append(word)

    def _stemmed(self, word: str) -> str:
        return word if word in STOP else self._english.stemWord(word)
