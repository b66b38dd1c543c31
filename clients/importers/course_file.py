"""Reads a course from a Markdown or a YAML file (O3).

Markdown: `#` is the title, `##` a chapter, deeper headings are sections. A line `Q: …` is a question of its chapter,
and the line `A: …` below it has the keywords of the answer, divided by commas. YAML has the keys `textbook`, `title`,
`chapters`, `sections`, `text`, `test_questions`, `question` and `answer_keywords`. The text of a section stays
verbatim, in passages of a few sentences. Every error names the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, cast

import msgspec

from ...protocol.courses import SECTION_LIMIT, CourseChapter, CourseQuestion, CourseSection
from ...protocol.errors import InvalidRequest
from ...protocol.redact import redact
from .markdown import blocks_of

FILE_LIMIT = 2_000_000
"""Bytes of a file."""

PASSAGE = 200
"""Characters up to which sentences are one passage. A question finds one or two sentences among others, and 600 tokens
hold ten of them: of four handbooks memd answers .91 with 200, .86 with 300, .78 with 700 (docs/BENCHMARKS.md)."""

FORM = "docs/AGENTS.md shows how a course is written"

_QUESTION, _ANSWER = re.compile(r"\s*Q:\s*(.*)"), re.compile(r"\s*A:\s*(.*)")
_CODE = re.compile(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+")
_ALLOWED = {
    "textbook": {"title", "perspective", "chapters"},
    "chapter": {"title", "sections", "test_questions"},
    "section": {"title", "text"},
    "question": {"question", "answer_keywords"},
}


class Course(NamedTuple):
    """A course as it is taught."""

    title: str
    chapters: tuple[CourseChapter, ...]


class _FileLine(NamedTuple):
    """A line of a file."""

    name: str
    line: int

    def refuse(self, problem: str, hint: str = FORM) -> NoReturn:
        raise InvalidRequest(f"{self.name}, line {self.line}: {problem}", hint=hint)


def read_course(path: Path) -> Course:
    """Read a course. Raises InvalidRequest for a file that can't be read or is no course."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidRequest(f"{path} can't be read: {error.strerror}", hint="name a .md or .yaml file") from error
    if len(content) > FILE_LIMIT:
        raise InvalidRequest(f"{path} has {len(content):,} bytes, at most {FILE_LIMIT:,}", hint="teach it in parts")
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        _FileLine(path.name, line).refuse("it is not valid UTF-8", "save it as UTF-8")
    course = yaml_course(text, path.name) if path.suffix in (".yaml", ".yml") else markdown_course(text, path.name)
    if not any(chapter.sections for chapter in course.chapters):
        raise InvalidRequest(f"{path.name} has no text below its chapters", hint=FORM)
    return course


# --- Markdown ----------------------------------------------------------------------------------------------------
class _MarkdownChapter:
    """A chapter that is being read."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.sections: list[CourseSection] = []
        self.questions: list[CourseQuestion] = []

    def done(self) -> CourseChapter:
        return CourseChapter(title=self.title, sections=tuple(self.sections), questions=tuple(self.questions))


class _MarkdownReader:
    """Reads the rows of a file in order."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.title = ""
        self.chapters: list[_MarkdownChapter] = []
        self._headings: list[tuple[int, str]] = []
        self._rows: list[str] = []
        self._question: tuple[int, str] | None = None

    def head(self, level: int, words: str, line: int) -> None:
        """Take a heading."""
        self.end(line)
        place = _FileLine(self._name, line)
        if not words:
            place.refuse("the heading is empty")
        if len(words) > 200:
            place.refuse(f"the heading has {len(words)} characters, at most 200")
        if level == 1:
            if self.title:
                place.refuse("a second title: a course has one `#` heading")
            self.title = words
        elif not self.title:
            place.refuse("a heading before the title: begin with `# Title`")
        elif level == 2:
            self.chapters.append(_MarkdownChapter(words))
            self._headings = []
        else:
            self._headings = [*(heading for heading in self._headings if heading[0] < level), (level, words)]

    def take(self, row: str, line: int, *, is_code: bool) -> None:
        """Take a row that is no heading."""
        place = _FileLine(self._name, line)
        question = None if is_code else _QUESTION.fullmatch(row)
        answer = None if is_code else _ANSWER.fullmatch(row)
        if question:
            self._check_answered()
            self._question = (line, question[1].strip())
        elif answer and self._question:
            self._add_question(answer[1], line)
        elif answer:
            place.refuse("an answer without a question: write `Q: …` above it")
        elif self._question and row.strip():
            place.refuse("the line below a question must be its answer: `A: keyword, keyword`")
        else:
            self._rows.append(row)

    def _add_question(self, keywords: str, line: int) -> None:
        assert self._question is not None
        place, (asked_at, question) = _FileLine(self._name, line), self._question
        self._question = None
        self._chapter(line).questions.append(_question(question, keywords.split(","), place, asked_at))

    def _check_answered(self) -> None:
        if self._question:
            _FileLine(self._name, self._question[0]).refuse("the question has no answer: write `A: keyword, keyword`")

    def _chapter(self, line: int) -> _MarkdownChapter:
        """Return the chapter of a row; what stands before the first one is a chapter with the title of the course."""
        if not self.title:
            _FileLine(self._name, line).refuse("text before the title: begin with `# Title`")
        if not self.chapters:
            self.chapters.append(_MarkdownChapter(self.title))
        return self.chapters[-1]

    def end(self, line: int) -> None:
        """End a section before `line`."""
        self._check_answered()
        text = "\n".join(self._rows).strip("\n")
        self._rows = []
        if text.strip():
            heading = " > ".join(words for _, words in self._headings)[:400]
            self._chapter(line).sections += (CourseSection(text=part, heading=heading) for part in parts_of(text))


def markdown_course(text: str, name: str) -> Course:
    """Read a course from Markdown. Raises InvalidRequest."""
    headings: dict[int, tuple[int, str]] = {}
    inside: set[int] = set()
    blocks = blocks_of(text)
    for token, following in zip(blocks, [*blocks[1:], *blocks[-1:]], strict=True):
        if token.type == "heading_open" and token.level == 0 and token.map:
            headings[token.map[0]] = (int(token.tag[1:]), " ".join(following.content.split()))
            inside.update(range(token.map[0] + 1, token.map[1]))
        elif token.type in ("fence", "code_block") and token.map:
            inside.update(range(*token.map))
    reader, rows = _MarkdownReader(name), text.removesuffix("\n").split("\n")
    for at, row in enumerate(rows):
        if at in headings:
            reader.head(*headings[at], at + 1)
        elif not (at in inside and at - 1 in headings):  # the line under a heading
            reader.take(row, at + 1, is_code=at in inside)
    reader.end(len(rows))
    if not reader.title:
        _FileLine(name, 1).refuse("the course has no title: begin with `# Title`")
    return Course(reader.title, tuple(chapter.done() for chapter in reader.chapters))


def _question(question: str, keywords: Sequence[str], place: _FileLine, asked_at: int) -> CourseQuestion:
    given = tuple(dict.fromkeys(words for keyword in keywords if (words := " ".join(keyword.split()))))
    if not question:
        _FileLine(place.name, asked_at).refuse("the question is empty")
    if not given:
        place.refuse("the answer has no keywords: write `A: keyword, keyword`")
    try:
        return msgspec.convert({"question": question, "keywords": given}, CourseQuestion)
    except msgspec.ValidationError as error:
        place.refuse(f"the question or its keywords are too long: {error}")


def parts_of(text: str) -> Iterator[str]:
    """Yield a text in passages: sentences up to `PASSAGE` characters, lists and paragraphs divided at their lines, code
    whole with what introduces it. No passage is longer than `SECTION_LIMIT`. Secrets are redacted before: memd would
    not know one by a part."""
    text = redact(text)[0]
    if len(text) <= PASSAGE:
        yield text
        return
    part = ""
    for piece, joint, is_code in _pieces(text):
        if part and len(part) + len(joint) + len(piece) > (SECTION_LIMIT if is_code else PASSAGE):
            yield part
            part = ""
        part = f"{part}{joint}{piece}" if part else piece
    if part:
        yield part


def _pieces(text: str) -> Iterator[tuple[str, str, bool]]:
    """Yield the sentences of a text and its blocks of code, each with what stood before it, and whether it is code."""
    at = 0
    for block in _CODE.finditer(text):
        yield from _sentences(text[at : block.start()])
        joint = "\n\n"
        for row in [block[0]] if len(block[0]) <= SECTION_LIMIT else block[0].split("\n"):
            yield from ((part, joint, True) for part in _slices(row))
            joint = "\n"
        at = block.end()
    yield from _sentences(text[at:])


def _sentences(text: str) -> Iterator[tuple[str, str, bool]]:
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        joint = "\n\n"
        for row in paragraph.split("\n"):
            for sentence in _SENTENCE_END.split(row):
                for part in _slices(sentence):
                    yield part, joint, False
                    joint = " "
            joint = "\n"


def _slices(text: str) -> Iterator[str]:
    return (text[start : start + SECTION_LIMIT] for start in range(0, len(text), SECTION_LIMIT))


# --- YAML --------------------------------------------------------------------------------------------------------
def yaml_course(text: str, name: str) -> Course:
    """Read a course from YAML. Raises InvalidRequest."""
    from ruamel.yaml import YAML  # late: it is slow to import
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    parser: Any = YAML(typ="rt")
    try:
        loaded: Any = parser.load(text)
    except MarkedYAMLError as error:
        marked: Any = error
        line = int(marked.problem_mark.line) + 1 if marked.problem_mark else 1
        _FileLine(name, line).refuse(str(marked.problem or "it is not valid YAML"))
    except RecursionError:
        _FileLine(name, 1).refuse("it is nested too deeply")
    except YAMLError as error:
        _FileLine(name, 1).refuse(f"it is not valid YAML: {error}")
    reader = _YamlReader(name)
    outer = reader.mapping(loaded, 1, {"textbook"} if _has(loaded, "textbook") else _ALLOWED["textbook"], "the course")
    book = reader.inner(outer, "textbook", "textbook") if "textbook" in outer else outer
    chapters = tuple(reader.chapter(each, line) for each, line in reader.rows(book, "chapters", required=True))
    return Course(reader.text(book, "title", 200), chapters)


def _has(value: object, key: str) -> bool:
    return isinstance(value, dict) and key in cast("dict[str, Any]", value)


class _YamlReader:
    """Reads the values of a loaded file, which know their lines."""

    def __init__(self, name: str) -> None:
        self._name = name

    def mapping(self, value: Any, line: int, allowed: set[str], what: str) -> Any:
        """Return a mapping with allowed keys alone."""
        if not isinstance(value, dict):
            _FileLine(self._name, line).refuse(f"{what} must have the keys {', '.join(sorted(allowed))}")
        mapping: Any = cast("Any", value)
        for key in mapping:
            if key not in allowed:
                at = _FileLine(self._name, mapping.lc.key(key)[0] + 1)
                at.refuse(f"the key {str(key)[:60]!r} is unknown; {what} has {', '.join(sorted(allowed))}")
        return mapping

    def inner(self, mapping: Any, key: str, what: str) -> Any:
        """Return the mapping below a key."""
        return self.mapping(mapping[key], self._line(mapping, key), _ALLOWED[what], f"`{key}`")

    def _line(self, mapping: Any, key: str) -> int:
        line = mapping.lc.key(key)[0] if key in mapping else mapping.lc.line
        return int(line) + 1

    def rows(self, mapping: Any, key: str, *, required: bool = False) -> Iterator[tuple[Any, int]]:
        """Yield the values of a list with their lines."""
        values = mapping.get(key)
        if values is None and not required:
            return
        if not isinstance(values, list) or (required and not values):
            _FileLine(self._name, self._line(mapping, key)).refuse(f"`{key}` must be a list")
        listed: Any = cast("Any", values)
        for number, value in enumerate(listed):
            yield value, int(listed.lc.item(number)[0]) + 1

    def text(self, mapping: Any, key: str, most: int = 0) -> str:
        """Return a text."""
        value, place = mapping.get(key), _FileLine(self._name, self._line(mapping, key))
        if not isinstance(value, str) or not value.strip():
            place.refuse(f"`{key}` must be a text")
        if most and len(value) > most:
            place.refuse(f"`{key}` has {len(value)} characters, at most {most}")
        return " ".join(value.split()) if most else value.strip("\n")

    def _keyword(self, value: Any, line: int) -> str:
        """Return a keyword as it stands in the file; only a text and a plain whole number are read as they stand."""
        if not isinstance(value, str) and type(value) is not int:
            _FileLine(self._name, line).refuse(f"the keyword {value!s:.60} is no text", "write it in quotes")
        return str(value)

    def chapter(self, value: Any, line: int) -> CourseChapter:
        """Return a chapter."""
        mapping = self.mapping(value, line, _ALLOWED["chapter"], "a chapter")
        sections: list[CourseSection] = []
        for each, at in self.rows(mapping, "sections"):
            section = self.mapping(each, at, _ALLOWED["section"], "a section")
            heading = self.text(section, "title", 200) if "title" in section else ""
            parts = parts_of(self.text(section, "text"))
            sections += (CourseSection(text=part, heading=heading) for part in parts)
        questions: list[CourseQuestion] = []
        for each, at in self.rows(mapping, "test_questions"):
            asked = self.mapping(each, at, _ALLOWED["question"], "a question")
            keywords = [self._keyword(*row) for row in self.rows(asked, "answer_keywords", required=True)]
            words = self.text(asked, "question", 500)
            questions.append(_question(words, keywords, _FileLine(self._name, at), at))
        return CourseChapter(
            title=self.text(mapping, "title", 200), sections=tuple(sections), questions=tuple(questions)
        )
