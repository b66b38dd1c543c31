"""Find the passages of a user's turn that the marks of a format show to be pasted: screens, fences, elements, quotes,
diffs, logs, records, tables, pages, commits, documents (P-19)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from .clauses import is_log
from .rules import any_of, table, words
from .turn_text import FIRSTS, LONGEST_FIELD, LONGEST_NAME, TurnText, block_end, is_separator

_DATA = table("speakers")
_HOST_TAGS = words("boilerplate", "tags")
_INLINE = words("speakers", "inline")
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
_HOST_NAME = re.compile("|".join(_DATA["hosts"].split()), re.IGNORECASE)
_PAGE, _PAGE_ENDS = tuple(any_of([sign]) for sign in _DATA["page"]), any_of(_DATA["page_ends"])
_NAVIGATION, _FOOTER = any_of(_DATA["navigation"]), any_of([_DATA["footers"]])
_QUOTED_CELL = re.compile(r'"[^"\n]*"')
_FENCE = re.compile(r"\s{0,8}(?:[-*+]\s+|\d+[.)]\s+)?(`{3,}|~{3,})(.*)")
_CODE = re.compile(r"(`+)[^`\n]{1,400}\1(?!`)")
_TAG = re.compile(r"(?:(?<!\w)<|<(?=/))(/?)([A-Za-z][\w:.-]*)(?:\s[^<>]*)?>")
_QUOTE = re.compile(r"\s{0,8}(?:>(?!=)|│|┃)")
_DIFF_HEAD = re.compile(
    r"diff --git |--- \S|\+\+\+ \S|@@ -\d|index [0-9a-f]{7,}\.\.|(?:new|deleted) file mode |Index: \S"
)
_DIFF_LINE = re.compile(
    r"[+\- \\]|diff |@@ |index [0-9a-f]|(?:new|deleted|old) |(?:rename|similarity|copy) |Binary |={20,}"
)
_ADDED = re.compile(r"\+(?=[^\s\d+]|\s\s)")
_CHANGED = re.compile(r"[+-](?=[^\s\d+-]|\s\s)")
_CUE = re.compile(r"\s*(?:\d+:)?\d+:\d{2}[.,]\d{1,3}\s*-->\s*(?:\d+:)?\d+:\d{2}[.,]\d{1,3}")
_HASHED = re.compile(r"\W{0,4}(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b\s+\S")
_TRAILER = re.compile(r"[A-Z][a-z]+(?:-[a-z]+)*-(?:by|to): .*<[^<>\s]+@[^<>\s]+>\s*$")
_PROMPT = r"\s*[\w@:~/()\[\]. -]{0,60}[$%❯➜](?:\s+|$)"
_PROMPTED = re.compile(_PROMPT)
_COMMAND = re.compile(r"\s*(?:(?:[\w.-]+@[\w.-]+[: ][^$%#\n]{0,60})[$%#]|[$❯➜])\s+[a-z./~][\w./~-]*(?:\s|$)")
_DISPLAY = re.compile(
    rf"(?:{_PROMPT}(?:{_DATA['displays']}|{_DATA['displays_behind_prompt']})(?:\s+\S+){{1,6}}"
    rf"|(?:{_DATA['displays']})(?:\s+\S+){{1,2}})$"
)
_HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_MERGE = re.compile(r"\s*Merge (?:pull request #\d+ from \S+|branch '[^']+'|remote-tracking branch )")
_COMMENT = re.compile(r"\s*(?://|/\*|\*/)")

PADDING = "  "  # The least blanks that fill up a line of a screen
FEWEST_PADDED = 3  # Lines of a screen, of one width, that show that it was copied
FEW = 4  # Words that an element within a sentence may have and still be the user's


def find_fences(turn: TurnText) -> None:
    at, unclosed = 0, dict[str, int]()
    while at < len(turn.lines):
        opening = _FENCE.match(turn.lines[at])
        last = at + 1
        if opening and len(opening[1]) < unclosed.get(opening[1][0], 1 << 30):
            last = _closing_fence(turn, at, opening[1])
            if last < 0:
                unclosed[opening[1][0]] = len(opening[1])
                last = at + 1
        if opening:
            turn.mark(at, last)
        at = last


def _closing_fence(turn: TurnText, at: int, mark: str) -> int:
    """The line behind the end of a fence, -1 without one."""
    for number in range(at + 1, len(turn.lines)):
        closing = _FENCE.match(turn.lines[number])
        if closing and closing[1].startswith(mark) and not closing[2].strip():
            return number + 1
    return -1


def find_elements(turn: TurnText) -> None:
    """Elements of HTML and of hosts, from their tag to its end; a host's lone end tag takes the whole turn."""
    text = _CODE.sub(lambda code: " " * len(code[0]), turn.text)
    for hidden in _HIDDEN.finditer(text):
        turn.mark_span(hidden.start(), hidden.end(), "pasted")
    opened: dict[str, list[re.Match[str]]] = defaultdict(list)
    lone: list[re.Match[str]] = []
    for tag in _TAG.finditer(text):
        name = tag[2].lower()
        if tag[0].endswith("/>") or name in _VOID:
            continue
        if not tag[1]:
            opened[name].append(tag)
        elif opened[name]:
            _element(turn, text, opened[name].pop(), tag)
        else:
            lone.append(tag)
    unclosed = (tag for tags in opened.values() for tag in tags if _runs_on(text, tag))
    if (start := min((tag.start() for tag in unclosed), default=-1)) >= 0:
        turn.mark_span(start, len(text), "pasted")
    if any(_is_hosts(tag[2].lower()) for tag in lone):
        turn.mark_span(0, len(text), "pasted")
    elif blocks := [tag for tag in lone if tag[2].lower() not in _INLINE]:
        end = text.find("\n\n", blocks[-1].end())
        turn.mark_span(0, len(text) if end < 0 else end, "pasted")
    turn.blank()


def _element(turn: TurnText, text: str, opening: re.Match[str], closing: re.Match[str]) -> None:
    name, inner = opening[2].lower(), text[opening.end() : closing.start()]
    is_phrase = name in _INLINE or (len(inner.split()) < FEW and "\n" not in inner)
    if name in _HOST_TAGS or not is_phrase:
        turn.mark_span(opening.start(), closing.end(), "pasted")


def _runs_on(text: str, tag: re.Match[str]) -> bool:
    """Whether an element without its end goes on to the end of the turn: a host's, or one whose tag has a line."""
    name, before, behind = tag[2].lower(), text.rfind("\n", 0, tag.start()) + 1, text.find("\n", tag.end())
    line = text[before : behind if behind >= 0 else len(text)]
    opens_line = line.lstrip().startswith(tag[0])
    return name in _HOST_TAGS or (opens_line and (_is_hosts(name) or (name not in _INLINE and line.strip() == tag[0])))


def _is_hosts(name: str) -> bool:
    return name in _HOST_TAGS or _HOST_NAME.search(name) is not None


def find_screens(turn: TurnText) -> None:
    """Text copied from the screen of a terminal: lines in a row that blanks fill up to one width, and an indented last
    line, of which the blanks were not copied."""
    widths = Counter(len(line) for line in turn.lines if line.strip() and line.endswith(PADDING))
    width = max(widths, key=lambda length: widths[length], default=0)
    if widths[width] < FEWEST_PADDED:
        return
    at = 0
    while at < len(turn.lines):
        end = turn.until(at, lambda line: len(line) != width and not line.endswith(PADDING))
        if sum(len(line) == width for line in turn.lines[at:end] if line.strip()) >= FEWEST_PADDED:
            turn.mark(at, end + any(line.startswith(PADDING) for line in turn.lines[end : end + 1]))
        at = end + 1


def find_quotes(turn: TurnText) -> None:
    is_quoted = False
    for at, line in enumerate(turn.lines):
        goes_on = is_quoted and line[:1].islower()  # a quoted line that was wrapped
        is_quoted = _QUOTE.match(line) is not None or goes_on
        if is_quoted:
            turn.mark(at, at + 1, "quoted")


def find_diffs(turn: TurnText) -> None:
    at = 0
    while at < len(turn.lines):
        last = at
        if _begins_diff(turn.lines, at):
            last = _diff_end(turn.lines, at)
            turn.mark(at, last)
        elif turn.lines[at][:1] in ("+", "-"):
            last = turn.until(at, lambda line: line[:1] not in ("+", "-"))
            if _is_changed_block(turn.lines[at:last]):
                last = _diff_end(turn.lines, at)
                turn.mark(at, last)
        at = max(last, at + 1)


def _begins_diff(lines: list[str], at: int) -> bool:
    if lines[at].startswith("--- "):
        return at + 1 < len(lines) and lines[at + 1].startswith("+++ ")
    return _DIFF_HEAD.match(lines[at]) is not None


def _is_changed_block(block: list[str]) -> bool:
    """Whether lines that all begin with a plus or minus are a diff without its head, and no list."""
    added, removed = [line for line in block if line[0] == "+"], [line for line in block if line[0] == "-"]
    return any(map(_ADDED.match, added)) and (not removed or any(map(_CHANGED.match, removed)))


def _diff_end(lines: list[str], first: int) -> int:
    """The line behind a diff. A blank line belongs to it if a changed line or a head follows, and no list."""
    at = first
    while at < len(lines):
        if not lines[at].strip():
            following = lines[at + 1] if at + 1 < len(lines) else ""
            if not (_DIFF_HEAD.match(following) or _CHANGED.match(following) or following.startswith("  ")):
                return at
        elif not _DIFF_LINE.match(lines[at]):
            return at
        at += 1
    return at


def find_subtitles(turn: TurnText) -> None:
    """Subtitles, from the first to the last line that says when one is shown, and the words below that."""
    if cues := [at for at, line in enumerate(turn.lines) if _CUE.match(line)]:
        turn.mark(cues[0], block_end(turn, cues[-1]))


def find_logs(turn: TurnText) -> None:
    """Lines of logs and traces, with what stands between two of them in one block."""
    for first, last in list(turn.paragraphs()):
        rows = [at for at in range(first, last) if _is_machine_line(turn.lines[at])]
        if not rows:
            continue
        if 2 * len(rows) >= rows[-1] + 1 - rows[0]:
            turn.mark(rows[0], rows[-1] + 1)
        else:
            for at in rows:
                turn.mark(at, at + 1)


def _is_machine_line(line: str) -> bool:
    bare = line.strip()
    if _HASHED.match(bare):
        return True
    return not bare.startswith(("#", ">")) and not is_separator(bare) and is_log(bare)


def find_tables(turn: TurnText) -> None:
    """Separated values: a header, and the lines below it with as many cells."""
    for first, last in list(turn.paragraphs()):
        at = first
        while at < last:
            end = max((_table_end(turn.lines[at:last], mark) for mark in ";\t|,"), default=0)
            turn.mark(at, at + end)
            at += max(end, 1)


def _table_end(lines: list[str], mark: str) -> int:
    """The number of lines of the table that the first line heads, 0 if it heads none."""
    header = _cells(lines[0], mark)
    if len(header) < 2 or not all(_is_column(cell) for cell in header):
        return 0
    end = next((at for at, line in enumerate(lines) if len(_cells(line, mark)) != len(header)), len(lines))
    rows = [_cells(line, mark) for line in lines[1:end]]
    is_spaced = any(f"{mark} " in line for line in lines[:end])
    is_data = any(cell[:1] == '"' or cell.replace(".", "").isdigit() for row in rows for cell in row)
    return end if rows and (is_data or not is_spaced) else 0


def _cells(line: str, mark: str) -> list[str]:
    """Return the cells of a line. A separator within quotation marks does not divide them."""
    return _QUOTED_CELL.sub(lambda cell: cell[0].replace(mark, " "), line).split(mark) if mark in line else []


def _is_column(cell: str) -> bool:
    return 0 < len(cell.split()) <= LONGEST_NAME + 1 and cell.rstrip()[-1] not in ".!:" and not FIRSTS.match(cell)


def find_pages(turn: TurnText) -> None:
    """The text of a web page: from its navigation or its author's line to its last lines."""
    _mark_above(turn, _FOOTER)
    signs = [(at, n) for at, line in enumerate(turn.lines) for n, sign in enumerate(_PAGE) if sign.search(line)]
    menus = [at for at in range(len(turn.lines)) if _is_menu(turn.lines, at)]
    if len({n for _, n in signs}) < 2 and not menus:
        return
    first = min([at for at, _ in signs] + menus)
    ends = [at for at in range(first, len(turn.lines)) if _PAGE_ENDS.search(turn.lines[at])]
    turn.mark(first, ends[-1] + 1 if ends else max(first + 1, turn.until(first, is_separator)))


def _is_menu(lines: list[str], at: int) -> bool:
    """Whether a row of names stands alone."""
    if len(lines[at]) > LONGEST_FIELD or not _NAVIGATION.match(lines[at]):
        return False
    around = lines[max(0, at - 1) : at] + lines[at + 1 : at + 2]
    return not any(line.strip() if "|" not in lines[at] else "|" in line for line in around)


def find_commits(turn: TurnText) -> None:
    """Messages of commits, below the line of a merge or above the lines that say who signed them."""
    _mark_above(turn, _TRAILER)
    merge = turn.until(0, lambda line: _MERGE.match(line) is not None)
    turn.mark(merge, turn.until(merge, is_separator))
    for at, line in enumerate(turn.lines):
        if _COMMENT.match(line):
            turn.mark(at, at + 1)


def _mark_above(turn: TurnText, ending: re.Pattern[str]) -> None:
    """Take each text that ends with such a line: from the line across before it, or from the front of the turn."""
    first = last = 0
    for at, line in enumerate((*turn.lines, "---")):
        if ending.search(line):
            last = at + 1
        elif is_separator(line):
            turn.mark(first, max(first, last))
            first = last = at + 1


def find_displays(turn: TurnText) -> None:
    """What a command printed: behind a prompt, or of a file, a page or a machine; to the end of its paragraph or to the
    next prompt."""
    for at, line in enumerate(turn.lines):
        if _DISPLAY.match(line) or _COMMAND.match(line):
            end = turn.until(at + 1, lambda below: not below.strip() or _PROMPTED.match(below) is not None)
            turn.mark(at, end)
