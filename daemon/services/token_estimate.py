"""Estimates the tokens of a text without a tokenizer, for budgets on the read path (Q10).

The estimate is on the high side: English and code have 3.3 to 4.4 characters a token, CJK about 1.
"""

from __future__ import annotations

CHARACTERS_PER_TOKEN = 3.3


def tokens(text: str) -> int:
    if text.isascii():
        return round(len(text) / CHARACTERS_PER_TOKEN + 0.5)
    wide = sum(ord(character) > 0x2E7F for character in text)
    return round((len(text) - wide) / CHARACTERS_PER_TOKEN + wide + 0.5)


def most_tokens_of(text: str) -> int:
    """Return the estimate with a token for each digit: many models divide numbers so (Llama, Qwen, Gemma)."""
    return tokens(text) + round(sum(map(str.isdigit, text)) * (1 - 1 / CHARACTERS_PER_TOKEN))
