"""Features of two statements' words: negation, change, numbers, times, how much they share. The recipe that trains the
pair head loads this file, so a change here requires a new head."""

from __future__ import annotations

import re

_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|neither|nor|without|cannot|hardly|rarely|lacks?|fails?|refuses?)\b|n['’]t\b",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    r"\b(?:now|instead|no longer|any ?more|since|these days|used to|until|lately|today|next|change of plan|"
    r"switched|moved|changed|became|become|replaced?|swapped|gave up|quit|stopped|started|new|raised|promoted|"
    r"upgraded|migrated|renamed|postponed|cancell?ed|turned|grew|rose|fell|dropped|went (?:up|down)|as of)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\d+(?:[.:,]\d+)*|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|twenty|thirty|forty|"
    r"fifty|hundred|thousand|half|double|first|second|third|fourth)\b",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:january|february|march|april|may|june|july|august|"
    r"september|october|november|december|spring|summer|autumn|winter|noon|midnight|morning|evening|last|next)\b",
    re.IGNORECASE,
)
_ALWAYS = re.compile(r"\b(?:always|ever|all|every)\b", re.IGNORECASE)
_WORD = re.compile(r"[\w']+")
_COMMON = frozenset(
    "the a an is are was were be been to of in on at for and or with by it its this that i we you he she they our my "
    "your his her their as from has have had do does did".split()
)
COUNT = 20  # How many numbers a row has


def features(earlier: str, later: str) -> list[float]:
    """`COUNT` numbers: negation and change in each, numbers and times in one alone, shares of common words."""
    words, after = _words(earlier), _words(later)
    mine, theirs = set(words) - _COMMON, set(after) - _COMMON
    shared = len(mine & theirs)
    negated = [len(_NEGATION.findall(text)) for text in (earlier, later)]
    changed = [len(_CHANGE.findall(text)) for text in (earlier, later)]
    numbers = [{hit.lower() for hit in _NUMBER.findall(text)} for text in (earlier, later)]
    times = [{hit.lower() for hit in _TIME.findall(text)} for text in (earlier, later)]
    row = (
        *negated,
        (negated[0] - negated[1]) % 2,
        *changed,
        min(3, len(numbers[0] - numbers[1])),
        min(3, len(numbers[1] - numbers[0])),
        bool(numbers[0] & numbers[1]),
        min(3, len(times[0] - times[1])),
        min(3, len(times[1] - times[0])),
        bool(times[0] & times[1]),
        shared / max(1, len(mine)),
        shared / max(1, len(theirs)),
        len(after) / max(1, len(words)) / 2,
        len(mine - theirs) / 4,
        len(theirs - mine) / 4,
        words[:1] == after[:1],
        words[:2] == after[:2],
        words[-1:] == after[-1:],
        bool(_ALWAYS.search(later)),
    )
    return [float(value) for value in row]


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]
