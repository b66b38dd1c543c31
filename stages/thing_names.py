"""The two names that a clause gives one thing: "Postgres (we call it the ledger db)", "cluster 'basil' aka prod-2"."""

from __future__ import annotations

import re

LONGEST = 4  # Words of a name
_ARTICLE = re.compile(r"^(?:the|a|an|our|my|your|its|their|this|that)\s+", re.IGNORECASE)
_QUOTED = r"`[^`]{1,40}`|\"[^\"]{1,40}\"|“[^”]{1,40}”|'[^']{1,40}'"
_WORD = r"[^\W_][\w.+#/-]*"
_NAME = rf"(?:{_QUOTED}|{_WORD}(?: {_WORD}){{0,3}})"
_AKA = r"(?:aka|a\.k\.a\.|also (?:known as|called|named)|(?<=\()(?:in )?short:?|(?<=\()alias:?)"
_CALLED = (
    r"(?:(?<=\()(?:which |that )?(?:we|they|people|everyone)(?: (?:all|just|also|usually))? calls? (?:it|this|them)"
    r"|(?:which|that) (?:we|they|people|everyone)(?: (?:all|just|also|usually))? calls?|abbreviated as)"
)
_ADVERB = (
    r"(?:\w+ly|every|each|once|twice|again|back|first|last|later|up|now|here|there|it|this|that|day|today|only|also)"
)
_BEHIND = re.compile(
    rf"(?P<thing>{_NAME})\s*(?:,|\(|\s[—–-])?\s*(?:is |are )?(?<!\w)(?:{_AKA}|{_CALLED})\s+(?P<alias>{_NAME})", re.I
)
_FOR_SHORT = re.compile(rf"(?P<thing>{_NAME}),? (?:or |\()?(?P<alias>{_QUOTED}|{_WORD}) for short\b", re.I)
_WE_CALL = re.compile(
    rf"\b(?:we|people|everyone)(?: (?:all|also|usually|just))? calls? "
    rf"(?P<thing>(?:the|our|my) {_WORD}(?: {_WORD}){{0,2}}?) "
    rf"(?P<alias>{_QUOTED}|(?:the )?(?!{_ADVERB}\b){_WORD})(?=[.,;!)]|$| (?:in|for|because|since|and)\b)",
    re.I,
)
_STOPS = re.compile(
    r"\b(?:is|are|was|were|has|have|had|runs?|uses?|lives?|needs?|must|will|can|should|in|on|at|for|to|from|with|and|or|but|"
    r"because|since|when|if|we|i|you|they|it|which|that|not|no|yet|now|by|of|as|so|them|him|her)\b",
    re.I,
)


def names_of(clause: str) -> tuple[str, ...]:
    """The names of the thing that a clause names twice or more, as they are written; () for any other clause."""
    for pattern in (_FOR_SHORT, _WE_CALL, _BEHIND):
        if hit := pattern.search(clause.replace("’", "'")):
            thing, alias = _last(hit["thing"]), _first(hit["alias"])
            if thing and alias and thing.casefold() != alias.casefold():
                return (thing, alias)
    return ()


def _last(words: str) -> str:
    """The name at the end of some words: a quoted one, else what stands behind the last verb or preposition."""
    if quoted := re.search(rf"(?:{_QUOTED})$", words):
        return quoted[0].strip("`\"“”'")
    parts = [part for part in _STOPS.split(words) if part.strip()]
    return _bare(parts[-1]) if parts else ""


def _first(words: str) -> str:
    """The name at the beginning of some words."""
    if quoted := re.match(_QUOTED, words):
        return quoted[0].strip("`\"“”'")
    return _bare(_STOPS.split(words)[0])


def _bare(words: str) -> str:
    name = _ARTICLE.sub("", words.strip()).strip().rstrip(".")
    return name if len(name) >= 2 and len(name.split()) <= LONGEST else ""
