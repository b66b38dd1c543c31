"""Find the passages of a user's turn that somebody else wrote: pasted mail, pages, logs, diffs, transcripts, prompts,
quotations, and what an agent of the session wrote before (P-19). Shapes of lines and blocks decide; the few words that
name parts of such shapes are data (`rules/speakers.toml`). Every pass is linear."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Literal, NamedTuple

from .clauses import is_log
from .echoes import words_of
from .reports import ends_with_speech, introduces
from .rules import any_of, table, words

Writer = Literal["quoted", "pasted", "agent"]

_DATA = table("speakers")
_HOST_TAGS = words("boilerplate", "tags")
_INLINE = words("speakers", "inline")
_ELEMENTS, _ANNOTATIONS = _INLINE | words("speakers", "blocks"), words("speakers", "annotations")
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
_HOST_NAME = re.compile("|".join(_DATA["hosts"].split()), re.IGNORECASE)
_FIELDS = words("speakers", "mail")
_ROLES, _WEAK_ROLES = words("speakers", "roles"), words("speakers", "weak_roles")
_SOURCES = words("speakers", "sources")
_CLOSING = re.compile(rf"\W*(?:{_DATA['closings'].replace(chr(10), '')})\b", re.IGNORECASE)
_REMARKS, _PERSONAS = any_of(_DATA["remarks"]), any_of(_DATA["personas"])
_PAGE, _PAGE_ENDS = tuple(any_of([sign]) for sign in _DATA["page"]), any_of(_DATA["page_ends"])
_NAVIGATION, _FOOTER = any_of(_DATA["navigation"]), any_of([_DATA["footers"]])
_WHO_FIELDS, _TEXT_FIELDS = words("speakers", "who_fields"), words("speakers", "text_fields")
_KEY = re.compile(r"(?<![^\s{\[(,;<|*'\"-])(?:[\w-]+[._-])?([^\W\d_]+)[\"'*]{0,3}\s?(?:=>?|:)")
_QUOTED_CELL = re.compile(r'"[^"\n]*"')
_CELL = re.compile(r"[|,;\t]")
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
_COLON = re.compile(r":(?=\s|$|[\"“„«])")
_SENTENCE_ENDS = re.compile(r"[.!?][\"”»)]?\s+(?=[A-ZÀ-Þ])")
_OPEN_QUOTE, _CLOSE_QUOTE = re.compile(r"\s*[\"“„«]"), re.compile(r"[\"”“»]")
_TURNING = re.compile(
    rf"[.!?]\s+(?:{_DATA['turns']}|(?:i|we) (?:(?:dis)?agree|do not|don.t))\b"
    rf"|[,;]\s+(?:{_DATA['turns']})\s+(?:{_DATA['own']})\b",
    re.IGNORECASE,
)
_FORWARDED_LINE = re.compile(rf"\W*(?:{_DATA['forwarded_lines']})", re.IGNORECASE)
_FIRSTS = re.compile(rf"\W*{_DATA['firsts']}", re.IGNORECASE)
_OWN_SPEECH = re.compile(r"\b(?:i|we)\b[^.!?\n]{0,60}\b(?:said|say|told|tell|wrote|mean|mentioned)\b[^.!?\n]*$", re.I)

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
_FIELD = re.compile(r"[\s*_>-]*([^\W\d_][\w-]*(?: [^\W\d_]\w*)?)[*_]*\s?:[*_]*(?:\s|$)")
_FORWARDED = re.compile(r"\s*[-_=]{3,}\s*[^\W\d_][^\n]{3,60}[^\W_]\s*[-_=]{3,}\s*$")
_SEPARATOR = re.compile(r"\s*(?:[-*_=~]\s?){3,}$")
_ROLE = re.compile(r"(?P<mark>[#*_>\[(<|\s]*)(?P<role>[^\W\d_]{2,12})(?P<end>[*_\])|]*\s*(?::|>)|[\])|*_]+|\s*$)")
_LABEL = re.compile(r"\s*(?:[-*•]\s+)?[*_]{0,2}(@?[A-Z][\w.'-]*(?: [A-Z][\w.'-]*){0,2})[*_]{0,2}:[*_]{0,2}\s+\S")
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2})?(?:\s?[AaPp]\.?[Mm]\.?)?"
_CHAT = re.compile(rf"\s*(?:[\[(]?[\d./-]{{6,10}},?\s+)?[\[(]?{_CLOCK}[\])]?\s*[-–]?\s*<?@?[\w .'-]{{1,40}}(?:>|:)\s")
_STAMPED = re.compile(
    rf"\s*[*_]*@?[A-Z][\w.'-]*(?: [A-Z][\w.'-]*){{0,2}}[*_]*\W{{1,4}}(?:\w+ )?(?:at )?{_CLOCK}\W{{0,2}}$"
)
_CUE = re.compile(r"\s*(?:\d+:)?\d+:\d{2}[.,]\d{1,3}\s*-->\s*(?:\d+:)?\d+:\d{2}[.,]\d{1,3}")
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
_HASHED = re.compile(r"\W{0,4}(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b\s+\S")
_TRAILER = re.compile(r"[A-Z][a-z]+(?:-[a-z]+)*-(?:by|to): .*<[^<>\s]+@[^<>\s]+>\s*$")
_SENDER = re.compile(rf"\s*[*_]{{0,2}}(?:{_DATA['senders']})[*_]{{0,2}}\s*:\s*(?P<who>\S.*)$", re.IGNORECASE)
_PROMPT = r"\s*[\w@:~/()\[\]. -]{0,60}[$%❯➜](?:\s+|$)"
_PROMPTED = re.compile(_PROMPT)
_DISPLAY = re.compile(
    rf"(?:{_PROMPT}(?:{_DATA['displays']}|{_DATA['displays_behind_prompt']})(?:\s+\S+){{1,6}}"
    rf"|(?:{_DATA['displays']})(?:\s+\S+){{1,2}})$"
)
_GENRES = words("speakers", "genres")
_POINTERS = _DATA["pointers"]
_SECTION_TITLE = re.compile(
    rf"\W*(?:{'|'.join(_DATA['titles']).replace('{people}', _DATA['people'])})\W*", re.IGNORECASE
)
_TRANSFORM = re.compile(
    rf"\b(?:{_DATA['transforms']})\b[^.!?:\n]{{0,60}}(?::|\b(?:{_POINTERS}|it)\b[^.!?:\n]{{0,40}}[.!?]?$)"
    rf"|\b(?:make|mach\w*|rends?|haz|rendi)\b[^.!?:\n]{{0,20}}\b(?:{_POINTERS}|das|den text)\b"
    rf"[^.!?:\n]{{0,30}}\b(?:{_DATA['more']})\b[^.!?:\n]{{0,30}}[.!?:]?$",
    re.IGNORECASE,
)
_SECTION = re.compile(r"\s{0,3}(?:#{1,6}\s|[*_]{2})(.+)")
_SECTION_NAMES = re.compile(rf"(?:{_DATA['sections'].replace(chr(10), '')})", re.IGNORECASE)
_FORM_FIELD = re.compile(
    rf"\s*[*_]{{0,2}}(?:{_DATA['sections'].replace(chr(10), '')})[*_]{{0,2}}\s*:\s+\S", re.IGNORECASE
)
_SHOWN = re.compile(r"\s*[●⏺⎿✻✽]\s")  # How agents mark their steps in a terminal
_FILE_NAME = re.compile(rf"[\s#`]*{_DATA['files']}[\s`:]*", re.IGNORECASE)
_ANNOUNCED_FILE = re.compile(
    r"\W*(?:{forms})\W*:\s*$".replace("{forms}", "|".join(_DATA["announced_files"]))
    .replace("{words}", _DATA["no_owners"])
    .replace("{file}", f"`?{_DATA['files']}`?"),
    re.IGNORECASE,
)
_RETURNS = re.compile(rf"\W*(?:{_DATA['returns']})", re.IGNORECASE)
_HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TIMED = re.compile(rf"\s*[^\W\d][\w .'-]{{1,40}}\s[\[(]{_CLOCK}[\])]\s*:\s")
_UNDERLINE = re.compile(r"={4,}\s*$")
_MERGE = re.compile(r"\s*Merge (?:pull request #\d+ from \S+|branch '[^']+'|remote-tracking branch )")
_COMMENT = re.compile(r"\s*(?://|/\*|\*/)")
_FICTION = re.compile(rf"\b(?:{_DATA['fictions']})", re.IGNORECASE)
_TOLD = re.compile(rf"\W*(?:{_DATA['passed'].replace('{told}', _DATA['told'])})", re.IGNORECASE)
_READING = re.compile(
    rf"\b(?:{_DATA['readings']})\b[^.!?\n]*\b(?:{_DATA['pointers']})\s+(?P<what>[^.!?:\n]+)[.!?]?\s*$", re.I
)
_REMARKED = re.compile(r"\W*@?[\w.-]+\W")
_PASSAGE = re.compile(r"[“„«\"]([^“”„«»\"]{20,4000})[”“»\"]")
_SENTENCES = re.compile(r"[.!?]\s+\S")
_WORDS = re.compile(r"[^\W\d_]+")

FEW = 4  # Words that an element within a sentence may have and still be the user's
LONGEST_FIELD, LONGEST_SIGNATURE, LONGEST_LEAD, LONGEST_REMARK = 200, 5, 20, 14
LONGEST_TITLE, LONGEST_NAME = 6, 4
MOST_COLONS = 4  # Colons of a line that may end a lead
LONGEST_READ = 40_000  # Characters of a turn that are read, half of them from each end
SHINGLE = 5  # Words of the sequences that are compared with what an agent wrote
FEWEST_REPEATED = 8  # Words from which a line may be told to repeat the agent's
REPEATED = 0.8  # Share of a line's sequences that the agent wrote
BLOCK = 18  # Words in a row that show that the agent's text was copied, and not one of its proposals taken up


class Passage(NamedTuple):
    """Characters `start:end` of a turn that are not its user's own words."""

    start: int
    end: int
    writer: Writer


def foreign_passages(text: str, agent: Sequence[str] = ()) -> tuple[Passage, ...]:
    """The passages of a user's turn that somebody else wrote, in order and disjoint. `agent`: what the session's agent
    wrote before."""
    turn = _TurnText(text)
    turn.leave_middle()
    for find in _FINDERS:
        find(turn)
    if agent:
        _repetitions(turn, agent)
    return turn.passages()


class _TurnText:
    """A turn as lines, of which those that are found to be somebody else's are blanked."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self._starts = [0]
        for line in self.lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._length = len(text)
        self._found: list[Passage] = []

    def leave_middle(self) -> None:
        """Take the middle of a very long turn for pasted, unread."""
        if self._length > LONGEST_READ:
            first = bisect_left(self._starts, LONGEST_READ // 2)
            last = bisect_left(self._starts, self._length - LONGEST_READ // 2)
            self.mark(first, max(first, min(last, len(self.lines))))

    @property
    def text(self) -> str:
        """The text without what was found, its characters in their places."""
        return "\n".join(self.lines)

    def mark(self, first: int, last: int, writer: Writer = "pasted") -> None:
        """Lines `first:last` are not the user's."""
        if first == last:
            return
        self._found.append(Passage(self._starts[first], min(self._length, self._starts[last] - 1), writer))
        self.lines[first:last] = [" " * len(line) for line in self.lines[first:last]]

    def mark_span(self, start: int, end: int, writer: Writer) -> None:
        """Characters `start:end` are not the user's. Call `blank` after the last one."""
        self._found.append(Passage(start, end, writer))

    def blank(self) -> None:
        """Blank what `mark_span` found."""
        text, pieces, at = self.text, list[str](), 0
        for start, end, _ in sorted(self._found):
            pieces += text[at:start], re.sub(r"[^\n]", " ", text[max(at, start) : end])
            at = max(at, end)
        self.lines = "".join((*pieces, text[at:])).split("\n")

    def start(self, line: int) -> int:
        return self._starts[line]

    def paragraphs(self) -> Iterator[tuple[int, int]]:
        """First and last line (exclusive) of each run of lines with words."""
        first = -1
        for at, line in enumerate((*self.lines, "")):
            if line.strip():
                first = at if first < 0 else first
            elif first >= 0:
                yield first, at
                first = -1

    def until(self, first: int, is_end: Callable[[str], bool]) -> int:
        """The next line from `first` on for which `is_end` holds, or the number of lines."""
        return next((at for at in range(first, len(self.lines)) if is_end(self.lines[at])), len(self.lines))

    def passages(self) -> tuple[Passage, ...]:
        """What was found, in order; where two overlap, the one that starts first has the words of both."""
        merged: list[Passage] = []
        for found in sorted(self._found):
            if merged and found.start <= merged[-1].end:
                merged[-1] = merged[-1]._replace(end=max(merged[-1].end, found.end))
            else:
                merged.append(found)
        return tuple(merged)


def _is_separator(line: str) -> bool:
    return _SEPARATOR.match(line) is not None


# --- blocks that their own marks delimit ------------------------------------------------------------------------------
def _fences(turn: _TurnText) -> None:
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


def _closing_fence(turn: _TurnText, at: int, mark: str) -> int:
    """The line behind the end of a fence, -1 without one."""
    for number in range(at + 1, len(turn.lines)):
        closing = _FENCE.match(turn.lines[number])
        if closing and closing[1].startswith(mark) and not closing[2].strip():
            return number + 1
    return -1


def _elements(turn: _TurnText) -> None:
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


def _element(turn: _TurnText, text: str, opening: re.Match[str], closing: re.Match[str]) -> None:
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


def _quotes(turn: _TurnText) -> None:
    is_quoted = False
    for at, line in enumerate(turn.lines):
        goes_on = is_quoted and line[:1].islower()  # a quoted line that was wrapped
        is_quoted = _QUOTE.match(line) is not None or goes_on
        if is_quoted:
            turn.mark(at, at + 1, "quoted")


def _diffs(turn: _TurnText) -> None:
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


def _subtitles(turn: _TurnText) -> None:
    """Subtitles, from the first to the last line that says when one is shown, and the words below that."""
    if cues := [at for at, line in enumerate(turn.lines) if _CUE.match(line)]:
        turn.mark(cues[0], _block_end(turn, cues[-1]))


def _logs(turn: _TurnText) -> None:
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
    return not bare.startswith(("#", ">")) and not _is_separator(bare) and is_log(bare)


# --- messages, transcripts, prompts and pages -------------------------------------------------------------------------
def _mails(turn: _TurnText) -> None:
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


def _letter_end(turn: _TurnText, first: int, body: int) -> int:
    """The line behind a letter: its writer's name below the closing, or a line across; else the end of the turn."""
    lines = turn.lines
    names = {word.lower() for line in lines[first:body] for word in _WORDS.findall(line)}
    at = turn.until(body, lambda line: bool(line.strip()))
    while at < len(lines):
        if _is_separator(lines[at]):
            return at
        words_here = [word.lower() for word in _WORDS.findall(lines[at])]
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


def _letters(turn: _TurnText) -> None:
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


def _files(turn: _TurnText) -> None:
    """The contents of a file below a line that is only its name, of a whole one below its title; and below a line that
    announces it."""
    first = turn.until(0, lambda line: bool(line.strip()))
    if first < len(turn.lines) and _FILE_NAME.fullmatch(turn.lines[first][:LONGEST_FIELD]):
        is_title = turn.lines[first].lstrip().startswith("#")
        turn.mark(first, turn.until(first, _is_separator) if is_title else _block_end(turn, first))
    for at, line in enumerate(turn.lines):
        if len(line) <= LONGEST_FIELD and _ANNOUNCED_FILE.match(line):
            turn.mark(at + 1, _return(turn, at + 1))


def _return(turn: _TurnText, first: int) -> int:
    """The line with which the user goes on behind a text: one across, or a paragraph that speaks of the text."""
    opens = (at for at, _ in turn.paragraphs() if at > first and _RETURNS.match(turn.lines[at]))
    return min(turn.until(first, _is_separator), next(opens, len(turn.lines)))


def _signed(turn: _TurnText) -> None:
    """A mail above the line of two hyphens that mail programs put before a name and an address."""
    last = max((at for at, line in enumerate(turn.lines) if line.rstrip() == "--"), default=-1)
    below = [line for line in turn.lines[last + 1 :] if line.strip()]
    is_name = last >= 0 and 1 < len(below) <= LONGEST_SIGNATURE + 1 and _NAME_LINE.fullmatch(below[0]) is not None
    if is_name and all(len(line.split()) <= LONGEST_REMARK for line in below):
        turn.mark(0, len(turn.lines))


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


def _records(turn: _TurnText) -> None:
    """Blocks that have a field for the speaker and one for the words, or a table with such columns."""
    for first, last in list(turn.paragraphs()):
        names = {hit[1].lower() for line in turn.lines[first:last] for hit in _KEY.finditer(line)}
        names |= _columns(turn.lines[first:last])
        if (names & _WHO_FIELDS and names & _TEXT_FIELDS) and len(names & (_WHO_FIELDS | _TEXT_FIELDS)) > 1:
            turn.mark(first, turn.until(last, lambda line: bool(line.strip()) and line[:1] not in " \t]}"))


def _tables(turn: _TurnText) -> None:
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
    """The cells of a line; a separator within quotation marks is none."""
    return _QUOTED_CELL.sub(lambda cell: cell[0].replace(mark, " "), line).split(mark) if mark in line else []


def _is_column(cell: str) -> bool:
    return 0 < len(cell.split()) <= LONGEST_NAME + 1 and cell.rstrip()[-1] not in ".!:" and not _FIRSTS.match(cell)


def _columns(lines: list[str]) -> set[str]:
    """The names in the first line of a table of which the second line has as many cells."""
    cells = [[cell.strip(" \"'*") for cell in _CELL.split(line.strip("| "))] for line in lines[:2]]
    is_table = len(cells) > 1 and len(cells[0]) > 1 and len(cells[1]) >= len(cells[0])
    return {cell.lower() for cell in cells[0]} if is_table else set()


def _transcripts(turn: _TurnText) -> None:
    """Lines that name their speaker: as a role of a dialogue with a machine, as people of a chat."""
    roles = [(at, mark) for at, line in enumerate(turn.lines) if (mark := _role_mark(line))]
    if any(mark != "weak" for _, mark in roles) or len(roles) > 1:
        first, last = roles[0][0], _block_end(turn, roles[-1][0])
        headed = any(mark == "heading" for _, mark in roles)
        turn.mark(first, turn.until(first, _is_separator) if headed else last)
    for rows in (_chat_rows(turn), _labelled_rows(turn), _speaking_rows(turn)):
        if rows:
            turn.mark(rows[0], _block_end(turn, rows[-1]))
    remarks = [at for at, line in enumerate(turn.lines) if _is_remark(line)]
    stamped = [at for at, line in enumerate(turn.lines) if _STAMPED.match(line)]
    if starts := remarks + (stamped if len(stamped) > 1 or stamped[:1] == [0] else []):
        first = min(starts)
        turn.mark(first, max(first + 1, turn.until(first, _is_separator)))


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


def _block_end(turn: _TurnText, line: int) -> int:
    return turn.until(line, lambda words: not words.strip())


def _chat_rows(turn: _TurnText) -> list[int]:
    rows = [at for at, line in enumerate(turn.lines) if _CHAT.match(line)]
    return rows if len(rows) > 1 or (rows and turn.lines[rows[0]].lstrip()[0] in "[(") else []


def _labelled_rows(turn: _TurnText) -> list[int]:
    """Lines that two people say in turn, each more than once in all."""
    labels = [(at, label[1]) for at, line in enumerate(turn.lines) if (label := _LABEL.match(line))]
    said = Counter(name for _, name in labels)
    return [at for at, _ in labels] if len(said) > 1 and len(labels) > len(said) else []


def _speaking_rows(turn: _TurnText) -> list[int]:
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


def _angled_rows(turn: _TurnText) -> list[int]:
    """Lines that begin with a nick in angle brackets: several, or one in the first person. An element is no nick."""
    rows = [(at, hit) for at, line in enumerate(turn.lines) if (hit := _ANGLED.match(line))]
    rows = [(at, hit) for at, hit in rows if hit["nick"].lower() not in _ELEMENTS]
    return [at for at, _ in rows] if len(rows) > 1 or any(_FIRSTS.match(hit["said"]) for _, hit in rows) else []


def _is_mention(line: str) -> bool:
    """Whether a handle labels the line: a person's, as a user calls only a machine by one."""
    hit = _MENTION.match(line)
    return hit is not None and not _MACHINES.search(hit["name"]) and hit["name"].lower() not in _ANNOTATIONS


def _is_remark(line: str) -> bool:
    if len(line.split()) > LONGEST_REMARK or line.rstrip().endswith((".", "!", "?")) or _FIRSTS.match(line):
        return False
    hit = _REMARKS.search(line)
    return hit is not None and _REMARKED.match(line) is not None and not re.search(r"\b(?:I|[Ww]e|[Yy]ou)\b", line)


def _personas(turn: _TurnText) -> None:
    """A text that tells a machine who it is, up to a paragraph in the first person."""
    paragraphs = list(turn.paragraphs())
    start = next((n for n, (first, last) in enumerate(paragraphs) if _has_persona(turn.lines[first:last])), None)
    if start is None:
        return
    end = len(turn.lines)
    for first, _ in paragraphs[start + 1 :]:
        if _FIRSTS.match(turn.lines[first]) or _is_separator(turn.lines[first]):
            end = first
            break
    turn.mark(paragraphs[start][0], end)


def _has_persona(lines: list[str]) -> bool:
    return any(_PERSONAS.match(line.lstrip("#*->• \t")) for line in lines)


def _pages(turn: _TurnText) -> None:
    """The text of a web page: from its navigation or its author's line to its last lines."""
    _mark_above(turn, _FOOTER)
    signs = [(at, n) for at, line in enumerate(turn.lines) for n, sign in enumerate(_PAGE) if sign.search(line)]
    menus = [at for at in range(len(turn.lines)) if _is_menu(turn.lines, at)]
    if len({n for _, n in signs}) < 2 and not menus:
        return
    first = min([at for at, _ in signs] + menus)
    ends = [at for at in range(first, len(turn.lines)) if _PAGE_ENDS.search(turn.lines[at])]
    turn.mark(first, ends[-1] + 1 if ends else max(first + 1, turn.until(first, _is_separator)))


def _is_menu(lines: list[str], at: int) -> bool:
    """Whether a row of names stands alone."""
    if len(lines[at]) > LONGEST_FIELD or not _NAVIGATION.match(lines[at]):
        return False
    around = lines[max(0, at - 1) : at] + lines[at + 1 : at + 2]
    return not any(line.strip() if "|" not in lines[at] else "|" in line for line in around)


def _commits(turn: _TurnText) -> None:
    """Messages of commits, below the line of a merge or above the lines that say who signed them."""
    _mark_above(turn, _TRAILER)
    merge = turn.until(0, lambda line: _MERGE.match(line) is not None)
    turn.mark(merge, turn.until(merge, _is_separator))
    for at, line in enumerate(turn.lines):
        if _COMMENT.match(line):
            turn.mark(at, at + 1)


def _mark_above(turn: _TurnText, ending: re.Pattern[str]) -> None:
    """Take each text that ends with such a line: from the line across before it, or from the front of the turn."""
    first = last = 0
    for at, line in enumerate((*turn.lines, "---")):
        if ending.search(line):
            last = at + 1
        elif _is_separator(line):
            turn.mark(first, max(first, last))
            first = last = at + 1


def _steps(turn: _TurnText) -> None:
    """What an agent showed in a terminal."""
    for first, last in list(turn.paragraphs()):
        shown = [at for at in range(first, last) if _SHOWN.match(turn.lines[at])]
        if len(shown) == 1 or any(turn.lines[at].lstrip()[0] != "●" for at in shown):
            turn.mark(shown[0], last)


def _documents(turn: _TurnText) -> None:
    """A document with the sections of a README, or with the fields of a ticket, from its title or first field."""
    titles = [at for at, line in enumerate(turn.lines) if at and _UNDERLINE.match(line) and turn.lines[at - 1].strip()]
    parts = [at for at, line in enumerate(turn.lines) if _is_section(line)]
    fields = [at for at, line in enumerate(turn.lines) if _FORM_FIELD.match(line)]
    if titles or parts:
        headings = [at for at, line in enumerate(turn.lines) if line.startswith("#")]
        turn.mark(min([at - 1 for at in titles] + parts + headings), len(turn.lines))
    elif len(fields) > 1:
        turn.mark(fields[0], _block_end(turn, fields[-1]))


def _is_section(line: str) -> bool:
    hit = _SECTION.match(line.rstrip()) if len(line) <= LONGEST_FIELD else None
    return hit is not None and _SECTION_NAMES.fullmatch(hit[1].strip(" :*_")) is not None


def _displays(turn: _TurnText) -> None:
    """What a command printed of a file, a page or a machine: to the end of its paragraph or to the next prompt."""
    for at, line in enumerate(turn.lines):
        if _DISPLAY.match(line):
            end = turn.until(at + 1, lambda below: not below.strip() or _PROMPTED.match(below) is not None)
            turn.mark(at, end)


def _titled(turn: _TurnText) -> None:
    """A text below the title of its genre, or below a request to read it."""
    for at, line in enumerate(turn.lines):
        if len(line) <= LONGEST_FIELD and (_is_title(turn.lines, at) or _asks_to_read(line)):
            turn.mark(at + 1, max(at + 1, turn.until(at + 1, _is_separator)))


def _is_title(lines: list[str], at: int) -> bool:
    if at and lines[at - 1].strip():
        return False
    if _SECTION_TITLE.fullmatch(lines[at]):
        return True
    spoken = [word.lower() for word in _WORDS.findall(lines[at])]
    if not 0 < len(spoken) <= LONGEST_TITLE or lines[at].rstrip()[-1] in ".!?:,;":
        return False
    return not _FIRSTS.match(lines[at]) and not _GENRES.isdisjoint((spoken[0], spoken[-1]))


def _asks_to_read(line: str) -> bool:
    hit = _READING.search(line)
    if hit is None:
        return (other := _TRANSFORM.search(line)) is not None and not line[other.end() :].strip()
    return not _SOURCES.isdisjoint(word.lower() for word in _WORDS.findall(hit["what"]))


def _led(turn: _TurnText) -> None:
    """What follows a colon behind words that name another speaker, or a text: in its paragraph, or in the next one."""
    text = turn.text
    for (first, last), (below, end) in pairwise([*turn.paragraphs(), (len(turn.lines), len(turn.lines))]):
        for at in range(first, last):
            line = turn.lines[at]
            colon = _lead_end(line)
            if colon < 0 and not _names_source(line) and not _announces(turn.lines, at):
                continue
            if colon >= 0 and (line[colon:].strip() or at + 1 < last):
                behind = turn.start(at) + colon
                turn.mark_span(behind, _speech_end(text, behind, turn.start(last) - 1), "quoted")
                break
            if at + 1 < last:
                turn.mark(at + 1, last)
                break
            if below < end and _is_near(turn, last, below):
                turn.mark(below, end)
    turn.blank()


def _lead_end(line: str) -> int:
    """The place behind words that say that another one's follow, or -1."""
    if _FORWARDED_LINE.match(line):
        return len(line)
    for colon in islice(_COLON.finditer(line), MOST_COLONS):
        start = max((end.end() for end in _SENTENCE_ENDS.finditer(line, 0, colon.start())), default=0)
        lead = line[start : colon.start()]
        if 0 < len(lead.split()) <= LONGEST_LEAD and (
            introduces(lead.strip("#*_->• \t")) or _FICTION.search(lead) or _TRANSFORM.search(f"{lead}:")
        ):
            return colon.end()
    return -1


def _speech_end(text: str, start: int, last: int) -> int:
    """Where the words behind a lead end: with their quotation marks, before a sentence that turns, or at `last`."""
    if quoted := _OPEN_QUOTE.match(text, start, last):
        closing = _CLOSE_QUOTE.search(text, quoted.end(), last)
        return closing.end() if closing else last
    turning = _TURNING.search(text, start, last)
    return turning.start() + 1 if turning else last


def _announces(lines: list[str], at: int) -> bool:
    """Whether a short line says that a text of somebody else follows: it passes it on, or ends with who speaks."""
    line = lines[at].strip()
    if len(line.split()) > LONGEST_LEAD or line.endswith(("?", ",")):
        return False
    if _TOLD.match(line):
        return True
    is_alone = at + 1 < len(lines) and not lines[at + 1].strip() and not (at and lines[at - 1].strip())
    return is_alone and ends_with_speech(line)


def _is_near(turn: _TurnText, last: int, below: int) -> bool:
    """Whether nothing but blank lines of the turn itself stands between two paragraphs."""
    return all(turn.start(at + 1) - turn.start(at) == 1 for at in range(last, below))


def _names_source(line: str) -> bool:
    spoken = [word.lower() for word in _WORDS.findall(line)]
    if not line.rstrip().endswith(":") or not 0 < len(spoken) <= LONGEST_LEAD or _FIRSTS.match(line):
        return False
    return not _SOURCES.isdisjoint(spoken)


def _quotations(turn: _TurnText) -> None:
    """Passages of several sentences in quotation marks, unless the user quotes himself."""
    text = turn.text
    for hit in _PASSAGE.finditer(text):
        is_played = _FICTION.search(text, max(0, hit.start() - LONGEST_FIELD), hit.start())
        if "\n\n" in hit[1] or not (is_played or _SENTENCES.search(hit[1])):
            continue
        if is_played or not _OWN_SPEECH.search(text[max(0, hit.start() - 100) : hit.start()]):
            turn.mark_span(hit.start(), hit.end(), "quoted")
    turn.blank()


_FINDERS: tuple[Callable[[_TurnText], None], ...] = (
    _fences,
    _elements,
    _quotes,
    _diffs,
    _commits,
    _steps,
    _displays,
    _subtitles,
    _logs,
    _mails,
    _letters,
    _signed,
    _files,
    _documents,
    _records,
    _tables,
    _transcripts,
    _personas,
    _pages,
    _titled,
    _led,
    _quotations,
)


# --- what the agent wrote ---------------------------------------------------------------------------------------------
def _repetitions(turn: _TurnText, agent: Sequence[str]) -> None:
    """Blocks that an agent of the session wrote. One line of it may be a proposal that the user takes up."""
    said = {tuple(run) for text in agent for run in _shingles(words_of(text))}
    rows: list[tuple[int, int]] = []
    for at, line in enumerate((*turn.lines, "-")):
        if not line.strip():
            continue
        spoken = words_of(line)
        shingles = _shingles(spoken)
        is_repeated = len(spoken) >= FEWEST_REPEATED and sum(run in said for run in shingles) >= REPEATED * len(
            shingles
        )
        if is_repeated:
            rows.append((at, len(spoken)))
            continue
        if rows and sum(count for _, count in rows) >= BLOCK:
            turn.mark(rows[0][0], rows[-1][0] + 1, "agent")
        rows = []


def _shingles(spoken: list[str]) -> list[tuple[str, ...]]:
    return [tuple(spoken[at : at + SHINGLE]) for at in range(len(spoken) - SHINGLE + 1)]
