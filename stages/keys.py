"""Give an exact key or an edge to a clause whose form a rule knows (R1, R8). The rules are data (`rules/keys.toml`,
`lexicon.toml`, `relations.toml`). A clause that adds ("also"), denies ("not") or reports ("says") never gets a key,
since a key retires the older record of that key."""

from __future__ import annotations

import re
from typing import NamedTuple

from .cues import plain
from .rules import any_of, table
from .words import NEGATIONS, PREPOSITIONS, STOP, tokens

_DATA = table("keys")
_NEVER = re.compile(_DATA["never"], re.IGNORECASE)
_ENDS = re.compile(_DATA["ends"], re.IGNORECASE)
_SCOPE = re.compile(_DATA["scope"], re.IGNORECASE)
_NUMBER_WORDS = "|".join(table("words")["numbers"])
_LEXICON = tuple(
    (name, re.compile(rf"(?<![\w-])(?:{words})(?![\w-])", re.IGNORECASE)) for name, words in table("lexicon").items()
)
_MANY = frozenset(_DATA["many"])
_PREFERRED_ONLY = frozenset({"season-of-day", "drink", "diet"})
_ARTICLES = STOP - {"go"}
_SELF = re.compile(r"^(?:i|my|me)\b", re.IGNORECASE)
_GROUP = re.compile(r"^(?:we|our|the|this)\b", re.IGNORECASE)
_HOLE = re.compile(r"\{([\w|]+)\}")
_LEADING = re.compile("^(?:" + any_of(_DATA["leading"]).pattern + ")+", re.IGNORECASE)


class KeyRule(NamedTuple):
    """One key rule, compiled."""

    pattern: re.Pattern[str]
    guard: re.Pattern[str] | None
    subject: str
    attribute: str
    only: tuple[str, ...]


class ExactKey(NamedTuple):
    """`subject.attribute`, and its value."""

    key: str
    value: str


_RULES = tuple(
    KeyRule(
        re.compile(rule["pattern"].replace("NUMBER", _NUMBER_WORDS), re.IGNORECASE),
        re.compile(rule["guard"], re.IGNORECASE) if "guard" in rule else None,
        rule["subject"],
        rule["attribute"],
        tuple(rule.get("only", ())),
    )
    for rule in _DATA["rule"]
)
_RELATIONS = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, relation in table("relations").items()
    for pattern in relation["patterns"]
)


def exact_key(clause: str) -> ExactKey | None:
    """The exact key and value that a clause gives, if a rule knows its form."""
    text = _LEADING.sub("", " ".join(plain(clause).replace("`", "").replace("**", "").split()))
    if len(text) > 240 or _NEVER.search(text):
        return None
    for rule in _RULES:
        match = rule.pattern.search(text)
        if match and (not rule.guard or rule.guard.search(text)) and (key := _filled(rule, match)):
            return key
    return None


def edge_key(clause: str, subject: str) -> str:
    """`subject predicate object` of the relation that a clause states in a few words, or ""."""
    text = _LEADING.sub("", " ".join(plain(clause).replace("`", "").split()))
    if len(text) > 120 or any(token.text.lower() in NEGATIONS for token in tokens(text)):
        return ""
    for name, pattern in _RELATIONS:
        match = pattern.search(text)
        if match and (thing := slug(match["o"])) and len(match["o"].split()) <= 5:
            return f"{subject} {name} {thing}"
    return ""


def slug(words: str, most: int = 4) -> str:
    """The content words of a phrase in the singular, joined by hyphens; "" where it has too many to be one thing."""
    content = [token for token in tokens(words) if token.kind != "mark" and token.text.lower() not in _ARTICLES]
    names = [re.sub(r"[^\w.+#]+", "-", _singular(token.text)).strip("-.") for token in content]
    return "-".join(name for name in names if name) if 0 < len(content) <= most else ""


def _singular(word: str) -> str:
    low = word.lower().strip("`")
    if low.endswith("ies") and len(low) > 4:
        return low[:-3] + "y"
    return low[:-1] if low.endswith("s") and len(low) > 3 and not low.endswith(("ss", "us", "is", "as", "os")) else low


def one_of_a_kind(left: str, right: str) -> bool:
    """Whether two texts name different values of one category that holds one value at a time."""
    for name, pattern in _LEXICON:
        if name in _MANY:
            continue
        before, after = ({hit.lower() for hit in pattern.findall(text)} for text in (left, right))
        if before and after and not before & after:
            return True
    return False


def categories(words: str) -> tuple[str, ...]:
    """The lexicon's categories that a phrase names values of."""
    return tuple(name for name, pattern in _LEXICON if pattern.search(words))


def _filled(rule: KeyRule, match: re.Match[str]) -> ExactKey | None:
    groups = {name: (words or "").strip() for name, words in match.groupdict().items()}
    said = groups.get("v", "")
    value, scope = _value(said)
    named = categories(value)
    if not _is_single(rule, value, said, named):
        return None
    purpose = slug(scope)
    thing = re.sub(r"^(?:my|our|the|this)\s+", "", groups.get("x", ""), flags=re.IGNORECASE)
    parts = {"category": "", "x": slug(thing), "t": slug(groups.get("t", ""))}
    if named and not ("uses" in rule.attribute and named[0] in _PREFERRED_ONLY):
        if "uses" in rule.attribute and named[0] in _MANY and not purpose and "x" not in groups:
            return None
        names_itself = purpose and (named[0].startswith(purpose[:6]) or purpose.startswith(named[0][:6]))
        parts["category"] = named[0] + (f".{purpose}" if purpose and not names_itself else "")
    elif not parts["t"] and re.search(rf"\bfor (?:\w+ ){{0,3}}{re.escape(scope)}", said, re.IGNORECASE):
        parts["t"] = purpose
    owner = _owner(rule.subject, groups)
    attribute = _HOLE.sub(
        lambda hole: next((parts[name] for name in hole[1].split("|") if parts[name]), ""), rule.attribute
    )
    if not owner or attribute.endswith(".") or not attribute:
        return None
    return ExactKey(f"{owner}.{attribute}", value)


def _is_single(rule: KeyRule, value: str, said: str, named: tuple[str, ...]) -> bool:
    """Whether a rule's value is one short value, of the categories that the rule is for. `said`: the value in full."""
    if not value or len(value.split()) > 6 or (len(named) > 1 and "uses" in rule.attribute):
        return False
    listed = re.search(r"(?:\band\b|,)(.*)", said, re.DOTALL)  # beside the value: `Slack and Teams`
    if listed and set(named) & set(categories(listed[1])):
        return False
    return not rule.only or bool(set(named) & set(rule.only))


def _value(words: str) -> tuple[str, str]:
    end = _ENDS.search(words)
    words = (words[: end.start()] if end else words).strip(" .!,;:'\"")
    scoped = _SCOPE.match(words)
    value, scope = (scoped["v"], scoped["t"]) if scoped else (words, "")
    value = re.sub(r"^(?:the|a|an|my|our|using|just|only)\s+", "", value, flags=re.IGNORECASE).strip()
    first = value.split(" ")[0].lower() if value else ""
    return ("", "") if first in PREPOSITIONS and first != "at" else (value.lower() if value else "", scope)


def _owner(template: str, groups: dict[str, str]) -> str:
    if "{" not in template:
        return template
    words = groups.get("s") or groups.get("x") or ""
    if re.match(r"(?:my|our) \w+", words, re.IGNORECASE) and groups.get("s"):
        return slug(words, 3) if words.lower().startswith("my") else "project"
    if _SELF.match(words):
        return "user"
    if _GROUP.match(words):
        return "project"
    return words.lower() if words and words[0].isupper() else ""
