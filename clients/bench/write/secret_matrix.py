"""Passwords in the forms in which people and programs write them, and texts that only resemble such forms.

The forms and the near misses are data in `samples/`; both are in two halves, and the rules were tuned on the first one.
"""

from __future__ import annotations

import random
import string
import tomllib
from collections.abc import Sequence
from pathlib import Path

import msgspec

SAMPLES = Path(__file__).parents[1] / "samples"
LENGTHS = (6, 8, 11, 12, 16, 24, 32)
EACH = 2
"""Passwords of each length and kind in each form."""
_ALPHABET = string.ascii_letters + string.digits
_WORDS = (
    "horse summer winter maple tiger orange castle river hunter coffee dragon monkey purple silver garden planet "
    "rocket window guitar falcon bridge cherry copper marble thunder ocean pepper basket candle forest"
).split()
_SYMBOLS = ("", "!", "&", "-", "_", "#", "@", "?", "*", "+", "%", ".")
_NUMBERS = ("5", "7", "42", "99", "123", "1987", "2024", "2026")


class MatrixCase(msgspec.Struct, frozen=True):
    """A password in a form. `human`: made as people do, of words, numbers and symbols; else random."""

    form: str
    text: str
    password: str
    human: bool
    held_out: bool

    @property
    def length(self) -> int:
        return len(self.password)

    def is_taken(self, hits: Sequence[tuple[str, int, int]]) -> bool:
        """Whether the text without these hits holds neither the password nor a half of a long one."""
        rest, half = self._without(hits), len(self.password) // 2
        parts = (self.password[:half], self.password[half:]) if len(self.password) >= 8 else ()
        return not any(part in rest for part in (self.password, *parts))

    def is_exact(self, hits: Sequence[tuple[str, int, int]]) -> bool:
        """Whether the hits are the password and nothing else."""
        return self._without(hits) == self.text.replace(self.password, "\0")

    def _without(self, hits: Sequence[tuple[str, int, int]]) -> str:
        text = self.text
        for _, start, end in sorted(hits, key=lambda hit: -hit[1]):
            text = f"{text[:start]}\0{text[end:]}"
        return text


def cases(seed: int = 5) -> list[MatrixCase]:
    """Every form with `EACH` random and `EACH` human-made passwords of each length; the same for the same seed."""
    chance = random.Random(seed)
    forms = tomllib.loads((SAMPLES / "secret_forms.toml").read_text(encoding="utf-8"))["form"]
    makers = ((False, random_password), (True, human_password))
    return [
        MatrixCase(
            form["name"], template.replace(r"\n", "\n").replace("{}", password), password, human, half != "tuned"
        )
        for form in forms
        for half in ("tuned", "held_out")
        for template in form[half]
        for length in LENGTHS
        for human, make in makers
        for password in (make(chance, length) for _ in range(EACH))
    ]


def near_misses() -> list[tuple[str, bool]]:
    """The authored near misses, each with whether it was held out of tuning."""
    texts: list[tuple[str, bool]] = []
    is_held_out = False
    for line in (SAMPLES / "secret_near_misses.txt").read_text(encoding="utf-8").split("\n"):
        if line.startswith("## "):
            is_held_out = line.startswith("## held_out")
        elif line:
            texts.append((line, is_held_out))
    return texts


def random_password(chance: random.Random, length: int) -> str:
    return "".join(chance.choices(_ALPHABET, k=length))


def human_password(chance: random.Random, length: int) -> str:
    """A word, a number and a symbol in one of four orders, filled up with words and cut; a digit is in it."""
    while True:
        word, other = chance.choice(_WORDS), chance.choice(_WORDS)
        word = word.capitalize() if chance.random() < 0.6 else word
        number, symbol = chance.choice(_NUMBERS), chance.choice(_SYMBOLS)
        disguised = word.replace("o", "0").replace("e", "3")
        orders = (word + number + other + symbol, word + symbol + number)
        password = chance.choice(
            (*orders, f"{disguised}{symbol}{other.capitalize()}{number}", number + word + symbol + other)
        )
        while len(password) < length:
            password += chance.choice(_WORDS).capitalize()
        password = password[:length]
        if any(map(str.isdigit, password)) and password[-1] not in ".?":
            return password
