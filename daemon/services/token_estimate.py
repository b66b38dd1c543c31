"""How many tokens a text will cost an agent, and how many fit (Q10).

Comes in: text. Goes out: an estimate without any tokenizer on the read path. Invariant: it errs on the high side, so a
budget that holds here holds for the agent (measured on English and code: 3.3 to 4.4 characters a token; CJK about 1).
"""

from __future__ import annotations

CHARACTERS_PER_TOKEN = 3.3


def tokens(text: str) -> int:
    """Estimated tokens of a text."""
    if text.isascii():
        return round(len(text) / CHARACTERS_PER_TOKEN + 0.5)
    wide = sum(ord(character) > 0x2E7F for character in text)
    return round((len(text) - wide) / CHARACTERS_PER_TOKEN + wide + 0.5)
