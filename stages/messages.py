"""Find the letters and transcripts in a user's turn (P-19)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from itertools import pairwise
from typing import Literal

from .rules import any_of, table, words
from .turn_text import FIRSTS, LONGEST_FIELD, LONGEST_NAME, WORDS, TurnText, block_end, is_separator

_DATA = table("speakers")
_ELEMENTS = words("speakers", "inline") | words("speakers", "blocks")
_ANNOTATIONS = words("speakers", "annotations")
_FIELDS = words("speakers", "mail")
_ROLES, _WEAK_ROLES = words("speakers", "roles"), words("speakers", "weak_roles")
_CLOSING = re.compile(rf"\W*(?:{_DATA['closings'].replace(chr(10), '')})\b", re.IGNORECASE)
_REMARKS = any_of(_DATA["remarks"])
_SALUTATION = re.compile(
    rf"\W*(?:(?P<person>{_DATA['salutations']})\b|(?:{_DATA['greetings']})\b)"
    r"(?P<to>(?:[^\S\n]+[\w.'’-]+){0,5})\s*(?:[,:!–-]|$)",
    re.IGNORECASE,
)
_MACHINES = re.compile(
    rf"\b(?:{'|'.join(sorted(_ROLES - words('speakers', 'humans')))}|{_DATA['assistants']}|there)\b", re.IGNORECASE
)
_CLOSES = re.compile(
    rf"(?:^|[.!?]\s+)\W*(?:{_DATA['closings'].replace(chr(10), '')})\b(?=(?:\W+[\w.'’-]+){{0,5}}\W*$)", re.I
)
_ADDRESS = re.compile(r"\W*(?P<person>(?!))?(?P<to>(?:[\w.'’-]+ ){0,4}[\w.'’-]+),\s*$")
_ADDRESSEE = re.compile(
    r"(?!\s+(?:I|My|We|Quick)\b)(?:\s+[A-ZÀ-Þ][\w.'’-]+){1,3}"
    rf"|\s+(?i:{_DATA['groups']})(?: (?i:alle|all|everyone|tutti|todos|tous))?"
)
_NAME_LINE = re.compile(r"\s*[A-ZÀ-Þ][\w.'’-]*(?: [A-ZÀ-Þ][\w.'’-]*){0,3}\s*")
_NO_SIGNATURE = re.compile(r"[.!?:;]\s*$|^\s*(?:[-*+#>|•]|\d+[.)])\s|:\s|[`{}=<>]")
_NAMED_CLOSING = re.compile(r"[,–-]\s*[A-ZÀ-Þ][\w.'’-]+(?:\s[A-ZÀ-Þ][\w.'’-]+){0,2}\W*$")
_FIELD = re.compile(r"[\s*_>-]*([^\W\d_][\w-]*(?: [^\W\d_]\w*)?)[*_]*\s?:[*_]*(?:\s|$)")
_FORWARDED = re.compile(r"\s*[-_=]{3,}\s*[^\W\d_][^\n]{3,60}[^\W_]\s*[-_=]{3,}\s*$")
_ROLE = re.compile(r"(?P<mark>[#*_>\[(<|\s]*)(?P<role>[^\W\d_]{2,12})(?P<end>[*_\])|]*\s*(?::|>)|[\])|*_]+|\s*$)")
_LABEL = re.compile(r"\s*(?:[-*•]\s+)?[*_]{0,2}(@?[A-Z][\w.'-]*(?: [A-Z][\w.'-]*){0,2})[*_]{0,2}:[*_]{0,2}\s+\S")
_ACCOUNT = re.compile(r"\s*(?P<name>[^\W\d_][^\W_]*(?P<joint>[._-])?[^\W_]{0,20}):\s+\S")
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2})?(?:\s?[AaPp]\.?[Mm]\.?)?"
_CHAT = re.compile(rf"\s*(?:[\[(]?[\d./-]{{6,10}},?\s+)?[\[(]?{_CLOCK}[\])]?\s*[-–]?\s*<?@?[\w .'-]{{1,40}}(?:>|:)\s")
_STAMPED = re.compile(
    rf"\s*[*_]*@?[A-Z][\w.'-]*(?: [A-Z][\w.'-]*){{0,2}}[*_]*\W{{1,4}}(?:\w+ )?(?:at )?{_CLOCK}\W{{0,2}}$"
)
_HANDLE = re.compile(
    r"\s*(?:(?P<name>@[\w.-]+|[\w.-]+ \([\w ]+\)):|(?P<nick>[\w.-]{2,20}>|\([\w.-]{2,20}\)|\[[\w.-]{2,20}\]))\s+\S"
)
_ANGLED = re.compile(r"\s*<[@+%~&! ]?(?P<nick>[^\W\d][\w.|^`\\-]{0,30}(?: [\w.-]{1,20})?)>\s+(?P<said>\S.*)")
_MENTION = re.compile(
    r"\s*(?:[-*•]\s+)?[*_]{0,2}@(?P<name>[\w.-]{1,40})[*_]{0,2}(?: \([\w ]+\))?"
    rf"(?:\s?:[*_]*\s+\S|\s*[,>–-]?\s+{_DATA['firsts']})",
    re.IGNORECASE,
)
_SPEAKER = re.compile(
    rf"\s*[*_]{{0,2}}(?P<name>(?:{_DATA['dialogue']})(?: (?:\d+|[a-z]))?)[*_]{{0,2}}\s*[:.]\s*[*_]{{0,2}}\s*\S", re.I
)
_ANSWERED = re.compile(rf"[^:]*:\W*(?:{_DATA['acknowledgements']})\b(?:\W+\w+){{0,2}}\W*$", re.IGNORECASE)
_SENDER = re.compile(rf"\s*[*_]{{0,2}}(?:{_DATA['senders']})[*_]{{0,2}}\s*:\s*(?P<who>\S.*)$", re.IGNORECASE)
_TIMED = re.compile(rf"\s*[^\W\d][\w .'-]{{1,40}}\s[\[(]{_CLOCK}[\])]\s*:\s")
_REMARKED = re.compile(r"\W*@?[\w.-]+\W")

LONGEST_SIGNATURE, LONGEST_REMARK = 5, 14  # Words


def find_mails(turn: TurnText) -> None:
    at = 0
    while at < len(turn.lines):
        end, is_header = _header(turn.lines, at)
        if is_header:
            end = _letter_end(turn, at, end)
            turn.mark(at, end)
        at = max(end, at + 1)


def _header(lines: list[str], first: int) -> tuple[int, bool]:
    """The line behind the fields that begin at line `first`, and whether they are a mail's header."""
    end, names = first, set[str]()
    if _FORWARDED.match(lines[first]):
        end, names = first + 1, {"forwarded", "message"}
    while end < len(lines):
        field = _FIELD.match(lines[end])
        if field and field[1].lower() in _FIELDS and len(lines[end]) <= LONGEST_FIELD:
            names.add(field[1].lower())
        elif not (names and lines[end][:1] in (" ", "\t") and lines[end].strip()):
            break
        end += 1
    return end, len(names) >= 2 or (len(names) == 1 and _is_sender(lines, first))


def _is_sender(lines: list[str], first: int) -> bool:
    """Whether the line above a text names only who wrote it."""
    hit = _SENDER.match(lines[first])
    if hit is None or (first and lines[first - 1].strip()):
        return False
    return "@" in hit["who"] or len(hit["who"].split()) <= LONGEST_NAME


def _letter_end(turn: TurnText, first: int, body: int) -> int:
    """The line behind a letter: its writer's name below the closing, or a line across; else the end of the turn."""
    lines = turn.lines
    names = {word.lower() for line in lines[first:body] for word in WORDS.findall(line)}
    at = turn.until(body, lambda line: bool(line.strip()))
    while at < len(lines):
        if is_separator(lines[at]):
            return at
        words_here = [word.lower() for word in WORDS.findall(lines[at])]
        is_short = 0 < len(words_here) <= LONGEST_SIGNATURE
        signs = is_short and (_CLOSING.match(lines[at]) is not None or set(words_here) <= names)
        if signs and at + 1 < len(lines) and (after := _signature_end(lines, at + 1)) > at:
            return after
        at += 1
    return at


def _signature_end(lines: list[str], first: int) -> int:
    """The blank line behind the short lines of a signature, or -1 where longer ones follow."""
    for at in range(first, len(lines)):
        if not lines[at].strip():
            return at
        if len(lines[at].split()) > LONGEST_SIGNATURE:
            return -1
    return len(lines)


def find_letters(turn: TurnText) -> None:
    """Letters without a header: from a salutation to the name below the closing."""
    closings = [at for at, line in enumerate(turn.lines) if _CLOSES.search(line) or _signs_off(turn.lines, at)]
    for at, line in enumerate(turn.lines):
        hit = _SALUTATION.match(line) or _address(turn.lines, at)
        if hit is None or _MACHINES.search(hit["to"]):
            continue
        number = bisect_left(closings, at)
        closing = closings[number] if number < len(closings) else -1
        signature = _signature_end(turn.lines, closing + 1) if 0 <= closing < len(turn.lines) - 1 else -1
        is_signed = closing >= 0 and (_NAMED_CLOSING.search(turn.lines[closing]) or signature > closing + 1)
        is_named = hit["person"] or _ADDRESSEE.fullmatch(hit["to"])
        if is_named or is_signed or (hit["to"].strip() and closing >= 0):
            turn.mark(at, max(signature, closing + 1) if is_signed else _letter_end(turn, at, at + 1))


def _address(lines: list[str], at: int) -> re.Match[str] | None:
    """A line of a few words and a comma that stands alone: it opens a letter, if one is signed."""
    is_alone = not (at and lines[at - 1].strip()) and at + 1 < len(lines) and not lines[at + 1].strip()
    return _ADDRESS.match(lines[at]) if is_alone else None


def _signs_off(lines: list[str], first: int) -> bool:
    """Whether a block of short lines ends a letter: words with a comma, or anything above a name."""
    if first == 0 or lines[first - 1].strip() or not lines[first].strip():
        return False
    last = _signature_end(lines, first)
    block = lines[first:last]
    if not 2 <= len(block) <= LONGEST_SIGNATURE or any(_NO_SIGNATURE.search(line) for line in block):
        return False
    return block[0].rstrip().endswith(",") or _NAME_LINE.fullmatch(block[1]) is not None


def find_transcripts(turn: TurnText) -> None:
    """Lines that name their speaker: as a role of a dialogue with a machine, as people of a chat."""
    roles = [(at, mark) for at, line in enumerate(turn.lines) if (mark := _role_mark(line))]
    if any(mark != "weak" for _, mark in roles) or len(roles) > 1:
        first, last = roles[0][0], block_end(turn, roles[-1][0])
        headed = any(mark == "heading" for _, mark in roles)
        turn.mark(first, turn.until(first, is_separator) if headed else last)
    for rows in (_chat_rows(turn), _labelled_rows(turn), _speaking_rows(turn)):
        if rows:
            turn.mark(rows[0], block_end(turn, rows[-1]))
    remarks = [at for at, line in enumerate(turn.lines) if _is_remark(line)]
    stamped = [at for at, line in enumerate(turn.lines) if _STAMPED.match(line)]
    if starts := remarks + (stamped if len(stamped) > 1 or stamped[:1] == [0] else []):
        first = min(starts)
        turn.mark(first, max(first + 1, turn.until(first, is_separator)))


def _role_mark(line: str) -> Literal["", "weak", "label", "heading"]:
    """How a line names the role that speaks: "" if it does not."""
    hit = _ROLE.match(line)
    if hit is None:
        return ""
    role, is_bare = hit["role"].lower(), ":" not in hit["end"] and ">" not in hit["end"]
    if role not in _ROLES and role not in _WEAK_ROLES:
        return ""
    marked = bool(hit["mark"].strip())
    if is_bare and not marked:
        return ""
    if is_bare and not line[hit.end() :].strip():
        return "heading"
    shouted = marked and hit["role"].isupper()
    return "label" if role in _ROLES or shouted else "weak"


def _chat_rows(turn: TurnText) -> list[int]:
    rows = [at for at, line in enumerate(turn.lines) if _CHAT.match(line)]
    return rows if len(rows) > 1 or (rows and turn.lines[rows[0]].lstrip()[0] in "[(") else []


def _labelled_rows(turn: TurnText) -> list[int]:
    """Lines that two people say in turn, each more than once in all: named, or by accounts such as `karo.b`."""
    for find in (_LABEL, _ACCOUNT):
        labels = [(at, label) for at, line in enumerate(turn.lines) if (label := find.match(line))]
        said = Counter(label[1] for _, label in labels)
        is_account = find is _LABEL or any(label["joint"] for _, label in labels)
        if is_account and len(said) > 1 and len(labels) > len(said):
            return [at for at, _ in labels]
    return []


def _speaking_rows(turn: TurnText) -> list[int]:
    """Lines of a dialogue in which each one may speak only once: their labels are handles or parts in it, or one line
    only answers the other."""
    for find in (_HANDLE, _SPEAKER):
        rows = [(at, hit["name"] or hit["nick"]) for at, line in enumerate(turn.lines) if (hit := find.match(line))]
        if len({name for _, name in rows}) > 1:
            return [at for at, _ in rows]
    if timed := [at for at, line in enumerate(turn.lines) if _TIMED.match(line)]:
        return timed
    labels = [(at, hit[1]) for at, line in enumerate(turn.lines) if (hit := _LABEL.match(line))]
    if rows := _angled_rows(turn) or [at for at, line in enumerate(turn.lines) if _is_mention(line)]:
        return rows
    for (above, asker), (below, answerer) in pairwise(labels):
        if (
            below == above + 1
            and asker != answerer
            and (answerer == "Me" or asker == "Me" or _ANSWERED.match(turn.lines[below]))
        ):
            return [at for at, _ in labels]
    return []


def _angled_rows(turn: TurnText) -> list[int]:
    """Lines that begin with a nick in angle brackets: several, or one in the first person. An element is no nick."""
    rows = [(at, hit) for at, line in enumerate(turn.lines) if (hit := _ANGLED.match(line))]
    rows = [(at, hit) for at, hit in rows if hit["nick"].lower() not in _ELEMENTS]
    return [at for at, _ in rows] if len(rows) > 1 or any(FIRSTS.match(hit["said"]) for _, hit in rows) else []


def _is_mention(line: str) -> bool:
    """Whether a handle labels the line: a person's, as a user calls only a machine by one."""
    hit = _MENTION.match(line)
    if hit is None or hit["name"].lower() in _ANNOTATIONS:
        return False
    return not _MACHINES.search(f"{hit['name']} {hit['name'].title()}")


def _is_remark(line: str) -> bool:
    if len(line.split()) > LONGEST_REMARK or line.rstrip().endswith((".", "!", "?")) or FIRSTS.match(line):
        return False
    hit = _REMARKS.search(line)
    return hit is not None and _REMARKED.match(line) is not None and not re.search(r"\b(?:I|[Ww]e|[Yy]ou)\b", line)
