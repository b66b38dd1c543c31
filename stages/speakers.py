"""Find the passages of a user's turn that somebody else wrote: pasted mail, pages, logs, diffs, transcripts, prompts,
quotations, and what an agent of the session wrote before (P-19). Marks of a format decide; shapes of lines and blocks
are hints, which the model of authorship weighs with all else that it reads. Every pass is linear."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, islice, pairwise
from typing import NamedTuple

from .authorship import Part, foreign, parts
from .echoes import words_of
from .marked_passages import (
    find_commits,
    find_diffs,
    find_displays,
    find_elements,
    find_fences,
    find_logs,
    find_pages,
    find_quotes,
    find_screens,
    find_subtitles,
    find_tables,
)
from .messages import find_letters, find_mails, find_transcripts
from .reports import ends_with_speech, introduces, is_reported, names_source
from .rules import table, words
from .turn_text import FIRSTS, LONGEST_FIELD, WORDS, Passage, TurnText, block_end, is_separator, merged

_DATA = table("speakers")
_SOURCES = words("speakers", "sources")
_COLON = re.compile(r":(?=\s|$|[\"“„«])")
_SENTENCE_ENDS = re.compile(r"[.!?][\"”»)]?\s+(?=[A-ZÀ-Þ])")
_OPEN_QUOTE, _CLOSE_QUOTE = re.compile(r"\s*[\"“„«]"), re.compile(r"[\"”“»]")
_TURNING = re.compile(
    rf"[.!?]\s+(?:{_DATA['turns']}|(?:i|we) (?:(?:dis)?agree|do not|don.t))\b"
    rf"|[,;]\s+(?:{_DATA['turns']})\s+(?:{_DATA['own']})\b",
    re.IGNORECASE,
)
_FORWARDED_LINE = re.compile(rf"\W*(?:{_DATA['forwarded_lines']})", re.IGNORECASE)
_OWN_SPEECH = re.compile(r"\b(?:i|we)\b[^.!?\n]{0,60}\b(?:said|say|told|tell|wrote|mean|mentioned)\b[^.!?\n]*$", re.I)
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
_FILE_NAME = re.compile(rf"[\s#`]*{_DATA['files']}[\s`:]*", re.IGNORECASE)
_ANNOUNCED_FILE = re.compile(
    rf"\W*{_DATA['announced_files']}\W*:\s*$".replace("{words}", _DATA["no_owners"]).replace(
        "{file}", f"`?{_DATA['files']}`?"
    ),
    re.IGNORECASE,
)
_RETURNS = re.compile(rf"\W*(?:{_DATA['returns']})", re.IGNORECASE)
_FICTION = re.compile(rf"\b(?:{_DATA['fictions']})", re.IGNORECASE)
_TOLD = re.compile(rf"\W*(?:{_DATA['passed'].replace('{told}', _DATA['told'])})", re.IGNORECASE)
_READING = re.compile(
    rf"\b(?:{_DATA['readings']})\b[^.!?\n]*\b(?:{_DATA['pointers']})\s+(?P<what>[^.!?:\n]+)[.!?]?\s*$", re.I
)
_PASSAGE = re.compile(r"[“„«\"]([^“”„«»\"]{20,4000})[”“»\"]")
_SENTENCES = re.compile(r"[.!?]\s+\S")

LONGEST_LEAD, LONGEST_TITLE = 20, 6  # Words
MOST_COLONS = 4  # Colons of a line that may end a lead
SHINGLE = 5  # Words of the sequences that are compared with what an agent wrote
FEWEST_REPEATED = 8  # Words from which a line may be told to repeat the agent's
REPEATED = 0.8  # Share of a line's sequences that the agent wrote
BLOCK = 18  # Words in a row that show that the agent's text was copied, and not one of its proposals taken up


def foreign_passages(text: str, agent: Sequence[str] = ()) -> tuple[Passage, ...]:
    """The passages of a user's turn that somebody else wrote, in order and disjoint. `agent`: what the session's agent
    wrote before."""
    turn = read_turn(text, agent)
    others = foreign(turn.parts, turn.known, turn.hints)
    found = [is_others and not is_known for is_others, is_known in zip(others, turn.known, strict=True)]
    return merged([*turn.passages, *_runs(turn.parts, found)])


class ReadTurn(NamedTuple):
    """The parts of a turn; what marks of a format show: passages, and for each part whether it lies in one; and for
    each part the hints, by finder."""

    parts: list[Part]
    passages: tuple[Passage, ...]
    known: list[bool]
    hints: list[list[bool]]


def read_turn(text: str, agent: Sequence[str] = ()) -> ReadTurn:
    """Return what the model of authorship reads of a turn."""
    turn = TurnText(text)
    turn.leave_middle()
    pieces = parts(turn.text)
    for find in _MARKS:
        find(turn)
    if agent:
        _repetitions(turn, agent)
    passages = turn.passages()
    hints: list[list[bool]] = []
    for find in _HINTS:
        before = len(turn.found)
        find(turn)
        hints.append(_covered(pieces, merged(turn.found[before:])))
    by_part = [list(row) for row in zip(*hints, strict=True)]
    return ReadTurn(pieces, passages, _covered(pieces, passages), by_part)


def _covered(pieces: Sequence[Part], passages: Sequence[Passage]) -> list[bool]:
    """Return for each part whether most of it lies in a passage. Both are in order."""
    out, at = list[bool](), 0
    for piece in pieces:
        while at < len(passages) and passages[at].end <= piece.start:
            at += 1
        shared = 0
        for start, end, _ in passages[at:]:
            if start >= piece.end:
                break
            shared += min(end, piece.end) - max(start, piece.start)
        out.append(2 * shared > piece.end - piece.start)
    return out


def _runs(pieces: Sequence[Part], others: Sequence[bool]) -> Iterator[Passage]:
    """Yield each run of parts that are somebody else's, if it has words. A report at its front is left to the rule
    for reports."""
    for is_others, run in groupby(zip(pieces, others, strict=True), key=lambda pair: pair[1]):
        if is_others:
            members = [piece for piece, _ in run]
            opens = next((at for at, piece in enumerate(members) if not is_reported(piece.text)), len(members))
            if any(len(word) > 1 for piece in members[opens:] for word in WORDS.findall(piece.text)):
                yield Passage(members[opens].start, members[-1].end, "pasted")


def _files(turn: TurnText) -> None:
    """The contents of a file below a line that is only its name, of a whole one below its title; and below a line that
    announces it."""
    first = turn.until(0, lambda line: bool(line.strip()))
    if first < len(turn.lines) and _FILE_NAME.fullmatch(turn.lines[first][:LONGEST_FIELD]):
        is_title = turn.lines[first].lstrip().startswith("#")
        turn.mark(first, turn.until(first, is_separator) if is_title else block_end(turn, first))
    for at, line in enumerate(turn.lines):
        if len(line) <= LONGEST_FIELD and _ANNOUNCED_FILE.match(line):
            turn.mark(at + 1, _return(turn, at + 1))


def _return(turn: TurnText, first: int) -> int:
    """The line with which the user goes on behind a text: one across, or a paragraph that speaks of the text."""
    opens = (at for at, _ in turn.paragraphs() if at > first and _RETURNS.match(turn.lines[at]))
    return min(turn.until(first, is_separator), next(opens, len(turn.lines)))


def _titled(turn: TurnText) -> None:
    """A text below the title of its genre, or below a request to read it."""
    for at, line in enumerate(turn.lines):
        if len(line) <= LONGEST_FIELD and (_is_title(turn.lines, at) or _asks_to_read(line)):
            turn.mark(at + 1, max(at + 1, turn.until(at + 1, is_separator)))


def _is_title(lines: list[str], at: int) -> bool:
    if at and lines[at - 1].strip():
        return False
    if _SECTION_TITLE.fullmatch(lines[at]):
        return True
    spoken = [word.lower() for word in WORDS.findall(lines[at])]
    if not 0 < len(spoken) <= LONGEST_TITLE or lines[at].rstrip()[-1] in ".!?:,;":
        return False
    return not FIRSTS.match(lines[at]) and not _GENRES.isdisjoint((spoken[0], spoken[-1]))


def _asks_to_read(line: str) -> bool:
    hit = _READING.search(line)
    if hit is None:
        return (other := _TRANSFORM.search(line)) is not None and not line[other.end() :].strip()
    return not _SOURCES.isdisjoint(word.lower() for word in WORDS.findall(hit["what"]))


def _led(turn: TurnText) -> None:
    """What follows a colon behind words that name another speaker, or a text: in its paragraph, or in the next one."""
    text = turn.text
    for (first, last), (below, end) in pairwise([*turn.paragraphs(), (len(turn.lines), len(turn.lines))]):
        for at in range(first, last):
            line = turn.lines[at]
            colon = _lead_end(line)
            if (
                colon < 0
                and not (line.rstrip().endswith(":") and names_source(line))
                and not _announces(turn.lines, at)
            ):
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


def _is_near(turn: TurnText, last: int, below: int) -> bool:
    """Whether nothing but blank lines of the turn itself stands between two paragraphs."""
    return all(turn.start(at + 1) - turn.start(at) == 1 for at in range(last, below))


def _quotations(turn: TurnText) -> None:
    """Passages of several sentences in quotation marks, unless the user quotes himself."""
    text = turn.text
    for hit in _PASSAGE.finditer(text):
        is_played = _FICTION.search(text, max(0, hit.start() - LONGEST_FIELD), hit.start())
        if "\n\n" in hit[1] or not (is_played or _SENTENCES.search(hit[1])):
            continue
        if is_played or not _OWN_SPEECH.search(text[max(0, hit.start() - 100) : hit.start()]):
            turn.mark_span(hit.start(), hit.end(), "quoted")
    turn.blank()


_Finder = Callable[[TurnText], None]
_MARKS: tuple[_Finder, ...] = (  # What these find is somebody else's
    find_screens,
    find_fences,
    find_elements,
    find_quotes,
    find_diffs,
    find_commits,
    find_displays,
    find_subtitles,
    find_logs,
    find_tables,
    _quotations,
)
_HINTS: tuple[_Finder, ...] = (
    find_mails,
    find_letters,
    _files,
    find_transcripts,
    find_pages,
    _titled,
    _led,
)


def _repetitions(turn: TurnText, agent: Sequence[str]) -> None:
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
