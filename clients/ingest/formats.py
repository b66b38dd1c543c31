"""Reads an input by its format into text: Markdown, plain text, HTML, PDF, JSON lines, mbox (W12).

Parsers of HTML and PDF are loaded here alone; they come with `memd[ingest]`. A file that can't be read raises
InvalidRequest or StoreError, which say what to do.
"""

from __future__ import annotations

import logging
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from io import BytesIO
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from ...protocol.errors import InvalidRequest, NotFound, StoreError, TooLarge
from ..importers.markdown import MarkdownPart, blocks_of, parts_of
from .input_text import InputItem, InputItems, InputPassage, InputText, label_of, longest, passages_of
from .markdown_items import category_of, item_runs
from .passages import LONGEST, paragraphs, pieces

if TYPE_CHECKING:
    from email.message import EmailMessage

SIZE_LIMIT = 50 * 1024 * 1024
ROW_LIMIT = 400
"""Characters of a row that is one statement; a longer one is text with a heading."""

ROW_FIELDS = 60
STANDARD_INPUT = "-"
INSTALL = 'install the parsers: pip install "memd[ingest]"'
_LABELS = ("title", "name", "subject", "summary", "question", "text", "message", "body", "content")
_CATEGORIES = ("type", "kind", "category", "label", "labels")
_MARKDOWN_SIGNS = re.compile(r"^(?:#{1,6} \S|[-*+] \S|\d{1,3}[.)] \S|```)", re.MULTILINE)
_SETEXT = re.compile(r"^\S.*\n(?:=+|-+)$", re.MULTILINE)
FEWEST_SIGNS = 2
_HTML = re.compile(rb"\s*(?:<!--.*?-->\s*)*<(?:!doctype html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_NO_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_QUOTED = re.compile(r"^>.*$\n?", re.MULTILINE)
_SIGNATURE = re.compile(r"^-- $.*\Z", re.MULTILINE | re.DOTALL)
_PAGE_NUMBER = re.compile(r"\n[ \t]*(?:page[ \t]+)?\d{1,4}[ \t]*\s*\Z", re.IGNORECASE)
_UNENDED = re.compile(r"(?<=[.!?]\s)[^.!?]{1,2000}\Z|\A[^.!?]{1,2000}\Z")
_UNSEEN = ("script", "style", "noscript", "template", "nav", "head", "iframe", "svg", "form")
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_BLOCKS = (*_HEADINGS, "p", "div", "ul", "ol", "table", "pre", "section", "article")
_HIDING = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0|opacity\s*:\s*0(?:[;\s]|$)", re.IGNORECASE
)


def read_bytes(name: str) -> bytes:
    """Return the bytes of a file or of standard input. Raises NotFound, InvalidRequest, StoreError, TooLarge."""
    if name == STANDARD_INPUT:
        return _checked(name, sys.stdin.buffer.read(SIZE_LIMIT + 1))
    try:
        status = os.stat(name)
        if stat.S_ISDIR(status.st_mode):
            raise InvalidRequest(f"{name} is a folder", hint="name its files, for example with a pattern: docs/*.md")
        if status.st_size > SIZE_LIMIT:
            raise _too_large(name, status.st_size)
        with open(name, "rb") as file:
            return _checked(name, file.read(SIZE_LIMIT + 1))
    except FileNotFoundError as error:
        raise NotFound(f"there is no {name}", hint="name a file, or - for standard input") from error
    except OSError as error:
        raise StoreError(f"{name} can't be read: {error.strerror}", hint="see its mode and owner") from error


def _checked(name: str, content: bytes) -> bytes:
    if len(content) > SIZE_LIMIT:
        raise _too_large(name, len(content))
    if not content.strip():
        raise InvalidRequest(f"{_called(name)} is empty", hint="there is nothing to take in")
    return content


def _too_large(name: str, size: int) -> TooLarge:
    hint = f"split it: at most {SIZE_LIMIT // 2**20} MB at once"
    has = f"has {size / 2**20:.0f} MB" if name != STANDARD_INPUT else "is too long"
    return TooLarge(f"{_called(name)} {has}", hint=hint)


def _called(name: str) -> str:
    return "standard input" if name == STANDARD_INPUT else name


def read_input(name: str, content: bytes) -> InputText:
    """Return the text of an input. Raises InvalidRequest if it is not text in a known format."""
    format = _format(name, content)
    found = _READERS[format](_called(name), content)
    if not found.passages:
        raise InvalidRequest(f"{_called(name)} has no text that memd can take in", hint=f"it was read as {format}")
    return found


def _format(name: str, content: bytes) -> str:
    """Return the format by the file's first bytes, else by its name."""
    suffix = Path(name).suffix.lower()
    if content.startswith(b"%PDF-"):
        return "PDF"
    if content.startswith(b"From ") and suffix in ("", ".mbox", ".mbx", ".txt"):
        return "mbox"
    if suffix in (".html", ".htm", ".xhtml") or _HTML.match(content[:4096]):
        return "HTML"
    by_suffix = {".md": "Markdown", ".markdown": "Markdown", ".mbox": "mbox", ".pdf": "PDF"}
    by_suffix |= dict.fromkeys((".jsonl", ".ndjson", ".json"), "JSON")
    if format := by_suffix.get(suffix):
        return format
    first = content.lstrip()[:1]
    is_json = first in (b"{", b"[") and content.rstrip()[-1:] in (b"}", b"]")
    return "JSON" if is_json and isinstance(_rows(content), list) else "text"


def _text(name: str, content: bytes) -> str:
    """Return the text of bytes. Raises InvalidRequest for what is no text."""
    is_wide = content[:2] in (b"\xff\xfe", b"\xfe\xff")
    if b"\0" in content and not is_wide:
        raise InvalidRequest(f"{name} is a binary file", hint="memd reads text, Markdown, HTML, PDF, JSON lines, mbox")
    try:
        text = content.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{name} is not UTF-8 text: {error.reason}", hint="save it as UTF-8") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


# --- text and Markdown ------------------------------------------------------------------------------------------------
def _markdown(name: str, content: bytes) -> InputText:
    return _of_markdown(_text(name, content), "Markdown", Path(name).stem.lower() == "readme")


def _of_markdown(text: str, format: str, is_readme: bool = False) -> InputText:
    blocks = blocks_of(text)
    title, parts, account = parts_of(text, blocks, is_readme=is_readme)
    passages: list[InputPassage] = []
    rows: list[int] = []
    for part in parts:
        divided = passages_of(part)
        passages += divided
        rows += [part.row] * len(divided)
    items = longest([*item_runs(text, blocks, rows)])
    return InputText(format=format, title=title, passages=tuple(passages), items=items, noise=account.noise)


def _plain(name: str, content: bytes) -> InputText:
    """Read text: as Markdown if it has headings or lists, else by paragraphs."""
    text = _text(name, content)
    if len(_MARKDOWN_SIGNS.findall(text)) + len(_SETEXT.findall(text)) >= FEWEST_SIGNS:
        return _of_markdown(text, "text")
    return InputText(format="text", passages=tuple(_of_paragraphs(text)))


def _of_paragraphs(text: str, where: str = "", heading: str = "", at: str = "") -> Iterator[InputPassage]:
    above = f"# {heading}\n" if heading else ""
    for paragraph in paragraphs(text):
        for piece in pieces(paragraph, longest=LONGEST - len(above)):
            if any(map(str.isalnum, piece)):
                yield InputPassage(text=above + piece, where=where or heading, at=at)


# --- HTML and PDF -----------------------------------------------------------------------------------------------------
def _html(name: str, content: bytes) -> InputText:
    text, title = html_text(content)
    found = _of_markdown(text, "HTML")
    return msgspec.structs.replace(found, title=title or found.title)


def html_text(content: bytes | str) -> tuple[str, str]:
    """Return a page as Markdown without what a reader of it does not see, and its title. Raises InvalidRequest."""
    try:
        from bs4 import BeautifulSoup, Comment
        from markdownify import MarkdownConverter
    except ImportError as error:
        raise InvalidRequest("HTML needs a parser that is not installed", hint=INSTALL) from error
    soup: Any = BeautifulSoup(content, "html.parser")
    title = " ".join(soup.title.get_text().split()) if soup.title else ""
    for element in soup.find_all(_is_unseen):
        element.decompose()
    for heading in soup.find_all(_HEADINGS):
        if heading.find(_BLOCKS):  # it does not end, and has the rest of the page
            heading.unwrap()
    for words in soup.find_all(string=True):
        if isinstance(words, Comment):
            words.extract()
    converter: Any = MarkdownConverter(
        heading_style="ATX", bullets="-", escape_asterisks=False, escape_underscores=False, escape_misc=False
    )
    try:
        return str(converter.convert_soup(soup)), title
    except RecursionError as error:
        raise InvalidRequest("the page is nested too deep", hint="save its text, and ingest that") from error


def _is_unseen(tag: Any) -> bool:
    attributes = cast("dict[str, Any]", tag.attrs or {})
    return tag.name in _UNSEEN or "hidden" in attributes or _HIDING.search(str(attributes.get("style", ""))) is not None


def _pdf(name: str, content: bytes) -> InputText:
    try:
        from pypdf import PdfReader
    except ImportError as error:
        raise InvalidRequest("PDF needs a parser that is not installed", hint=INSTALL) from error
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    hint = "it may be damaged; save its text, and ingest that"
    passages: list[InputPassage] = []
    try:
        reader = PdfReader(BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise InvalidRequest(f"{name} is encrypted", hint="save it without its password, and ingest that")
        title = str((reader.metadata.title if reader.metadata else "") or "")
        pages = [_printable(page.extract_text()) for page in reader.pages]
        for number, text in enumerate(_with_whole_sentences(pages), 1):
            passages += _of_paragraphs(text, where=f"page {number}")
    except InvalidRequest:
        raise
    except Exception as error:  # the parser raises errors of many kinds for a damaged file
        raise InvalidRequest(f"{name} can't be read as PDF: {type(error).__name__}", hint=hint) from error
    if not passages:
        raise InvalidRequest(f"{name} has no text: its pages are pictures", hint="recognise its text first (OCR)")
    return InputText(format="PDF", title=title, passages=tuple(passages))


def _with_whole_sentences(pages: Sequence[str]) -> Iterator[str]:
    """Yield the text of each page without its number; a sentence that goes on on the next page belongs to that."""
    begun = ""
    bare = [_PAGE_NUMBER.sub("", page).strip() for page in pages]
    for text, following in zip_longest(bare, bare[1:], fillvalue=""):
        text = f"{begun}\n{text}" if begun else text
        rest = _UNENDED.search(text) if following[:1].islower() else None
        begun = rest[0] if rest else ""
        yield text[: rest.start()] if rest else text


def _printable(text: str) -> str:
    return text.encode("utf-8", "replace").decode().replace("\0", "")


# --- JSON -------------------------------------------------------------------------------------------------------------
def _json(name: str, content: bytes) -> InputText:
    rows = _rows(content)
    if isinstance(rows, int):
        hint = f"memd reads one JSON value a line (line {rows} is not JSON), or a list of objects"
        raise InvalidRequest(f"{name} is not valid JSON", hint=hint)
    passages: list[InputPassage] = []
    items: list[InputItem] = []
    for row in rows:
        first = len(passages)
        passages += _row_passages(row)
        if places := tuple(range(first, len(passages))):
            items.append(InputItem(label=_row_label(row), passages=places, category=_row_category(row)))
    return InputText(format="JSON", passages=tuple(passages), items=InputItems(of="JSON rows", items=tuple(items)))


def _rows(content: bytes) -> list[Any] | int:
    """Return the rows of JSON lines, of a list, or of the only list in an object; else the number of
    the first line that is no JSON."""
    try:
        value: Any = msgspec.json.decode(content)
    except _NO_JSON:
        return _rows_by_line(content.removeprefix(b"\xef\xbb\xbf").splitlines())
    if isinstance(value, dict):
        parts = list(cast("dict[str, Any]", value).values())
        lists = [cast("list[Any]", part) for part in parts if isinstance(part, list)]
        return lists[0] if len(lists) == 1 else [value]
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _rows_by_line(lines: Sequence[bytes]) -> list[Any] | int:
    rows: list[Any] = []
    for number, line in enumerate(lines, 1):
        try:
            rows += [msgspec.json.decode(line)] if line.strip() else []
        except _NO_JSON:
            return number
    return rows


def _fields(value: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the fields of a row, those within others with both names."""
    if isinstance(value, dict) and depth < 3:
        for key, inner in cast("dict[str, Any]", value).items():
            yield from _fields(inner, f"{name}.{key}" if name else str(key), depth + 1)
    elif isinstance(value, list):
        words = [str(each) for each in cast("list[Any]", value) if isinstance(each, str | int | float)]
        if words:
            yield name, ", ".join(words)
    elif isinstance(value, str | int | float) and (words := str(value).strip()):
        yield name, words


def _row_passages(row: Any) -> Iterator[InputPassage]:
    fields = list(_fields(row))[:ROW_FIELDS]
    told = "; ".join(f"{name}: {' '.join(words.split())}" if name else words for name, words in fields)
    if not any(map(str.isalnum, told)):
        return
    if len(told) <= ROW_LIMIT:
        yield InputPassage(text=told, form="row" if len(fields) > 1 else "")
        return
    text = "\n\n".join(f"{name}: {words}" if name else words for name, words in fields)
    yield from _of_paragraphs(text, heading=_row_label(row))


def _row_label(row: Any) -> str:
    fields = dict(_fields(row))
    named = next((fields[name] for name in _LABELS if fields.get(name)), "")
    return label_of(named or next(iter(fields.values()), ""))


def _row_category(row: Any) -> str:
    fields = dict(_fields(row))
    named = next((fields[name] for name in _CATEGORIES if fields.get(name)), "")
    category = " ".join(named.split(",")[0].split())
    return category if len(category) <= 40 else ""


# --- mail -------------------------------------------------------------------------------------------------------------
def _mbox(name: str, content: bytes) -> InputText:
    passages: list[InputPassage] = []
    items: list[InputItem] = []
    for message in _messages(content):
        first = len(passages)
        subject = label_of(_printable(str(message.get("subject", "")))) or "without a subject"
        passages += _of_paragraphs(_body(message), heading=subject, at=_sent_at(message))
        if places := tuple(range(first, len(passages))):
            items.append(InputItem(label=subject, passages=places, category=category_of(subject)))
    return InputText(format="mbox", passages=tuple(passages), items=InputItems(of="messages", items=tuple(items)))


def _messages(content: bytes) -> Iterator[EmailMessage]:
    from email import message_from_bytes, policy

    for chunk in re.split(rb"^From [^\n]*\n", content, flags=re.MULTILINE):
        if chunk.strip():
            unescaped = re.sub(rb"^>(>*From )", rb"\1", chunk, flags=re.MULTILINE)
            yield message_from_bytes(unescaped, policy=policy.default)


def _body(message: EmailMessage) -> str:
    """Return what the sender of a message wrote, without quotations and signature."""
    try:
        part = cast("EmailMessage | None", message.get_body(("plain", "html")))
    except (KeyError, ValueError, AttributeError):  # parts that are nested against the rules
        return ""
    text = _decoded(part) if part else ""
    if part and part.get_content_type() == "text/html":
        text = html_text(text)[0]
    text = _printable(text).replace("\r\n", "\n")
    return _SIGNATURE.sub("", _QUOTED.sub("", text))


def _decoded(part: EmailMessage) -> str:
    """Return the text of a part in the character set that it names, else in the usual ones."""
    content = part.get_payload(decode=True)
    assert isinstance(content, bytes)
    for encoding in (part.get_content_charset("utf-8"), "utf-8"):
        with suppress(LookupError, ValueError):
            return content.decode(encoding)
    return content.decode("latin-1")


def _sent_at(message: EmailMessage) -> str:
    """Return when a message was sent, "" without a time and its zone."""
    from email.utils import parsedate_to_datetime

    try:
        sent = parsedate_to_datetime(str(message.get("date", "")))
    except (ValueError, TypeError):
        return ""
    return sent.isoformat() if sent.tzinfo else ""


_READERS: dict[str, Callable[[str, bytes], InputText]] = {
    "Markdown": _markdown,
    "text": _plain,
    "HTML": _html,
    "PDF": _pdf,
    "JSON": _json,
    "mbox": _mbox,
}

__all__ = ["SIZE_LIMIT", "STANDARD_INPUT", "MarkdownPart", "html_text", "read_bytes", "read_input"]
