"""Links to documents of a repository: whether the part that a memory came from has changed (C3). Advice only.

A document at its path is compared without git. If it is not there, git's index shows where the same content is now,
and HEAD's history shows whether a commit deleted it. A deletion that git does not confirm within its time is
`out of reach`, because the user may have checked out another branch.
"""

from __future__ import annotations

import errno
import os
import stat
import subprocess
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b, sha1
from itertools import pairwise
from pathlib import Path, PurePosixPath

import msgspec

from ....protocol.document_links import DocumentState as State
from ....protocol.repository_folder import repository_folder

LIMIT = 2 * 1024 * 1024
"""Most bytes of a document that a link leads to."""

GIT_S = 5.0
"""Seconds that one call of git may take."""

SEPARATOR = " > "
_NESTING = 100
"""Lists and quotes within each other that the parser reads."""

_MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd", ".mdx"})
_NOT_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR})

Holds = Callable[[str], bool]
"""Tells whether a text holds a part that is known by its words."""


class Link(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of a document as it was when the link was made.

    `path`: below the repository's root, without symbolic links; `anchor`: the headings above the part, outermost first,
    joined by " > ", "" for the whole file; `blob`: git's id of the file's bytes; `section`: 16 hex digits of the
    BLAKE2b hash of the text under the heading, each run of blanks as one space. If several sections have the same
    anchor, the part is the text of all of them. Both hashes are "" for a part that is known by its words.
    """

    path: str
    anchor: str = ""
    blob: str = ""
    section: str = ""


def link_to(root: Path, path: str, anchor: str = "") -> Link | None:
    """Return a link with the content of now; None for a file that is missing, unreadable, binary, larger than `LIMIT`
    or outside `root`, and for a Markdown file without that heading."""
    try:
        content = _read(root, path)
    except FileNotFoundError:
        return None
    if content is None or _is_binary(content):
        return None
    place = _place(root, path)
    anchor = _folded(anchor) if _is_markdown(place) else ""
    section = _section(content, place, anchor)
    return None if section is None else Link(path=place, anchor=anchor, blob=_blob(content), section=section)


def anchors_of(root: Path, path: str) -> tuple[str, ...] | None:
    """Return the anchors of a Markdown file in their order; None for a file that `link_to` makes no link to."""
    if link_to(root, path) is None or not _is_markdown(path):
        return None
    content = _read(root, path)
    return None if content is None else tuple(dict.fromkeys(anchor for anchor, _ in _sections(_text(content))))


def root_of(file: Path) -> Path:
    """Return the top folder of the repository that a file lies in, or lay in; else the file's folder."""
    return repository_folder(file.parent) or file.parent


def state_of(
    link: Link, root: Path, *, tracked: Callable[[], Mapping[str, str]], holds: Holds | None = None
) -> tuple[State, str]:
    """Return a link's state, and the document's path, which differs from the link's if the document moved.

    `holds`: compares the text under the anchor, or of the whole file if the anchor is not there, instead of hashes.

    `tracked`: see `tracked_blobs`; it is called only if the document is not at its path. A document that moved and
    whose part was edited there is `changed`.
    """
    try:
        content = _read(root, link.path)
    except FileNotFoundError:
        return _state_elsewhere(link, root, tracked(), holds)
    if content is None:
        return "out of reach", link.path
    return ("fresh" if _is_same(link, link.path, content, holds) else "changed"), link.path


class HeadFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file as HEAD has it. `path`: below `root`, the top folder of its repository; `commit`: the hash of the commit
    that changed it last, made on `day` (such as 2026-01-31)."""

    text: str
    path: str
    root: str
    commit: str
    day: str


def at_head(file: str) -> HeadFile | None:
    """Return an absolute path's file at HEAD, None if no commit of the branch has it."""
    root = root_of(Path(file))
    try:
        path = _place(root, os.path.relpath(file, root))
    except ValueError:
        return None
    content = _git(root, "show", f"HEAD:{path}") if path else None
    last = (_git(root, "log", "-1", "--format=%H %as", "HEAD", "--", path) or "").split()
    if content is None or len(last) != 2 or len(content) > LIMIT:
        return None
    return HeadFile(text=content, path=path, root=str(root), commit=last[0], day=last[1])


def drop_documents() -> None:
    """Drop the documents that were parsed last from memory."""
    _sections.cache_clear()


def tracked_blobs(root: Path) -> dict[str, str]:
    """Return the blob id of each file in git's index by its path below `root`, {} if git fails."""
    blobs: dict[str, str] = {}
    for entry in (_git(root, "ls-files", "-s", "-z") or "").split("\0"):
        fields, _, path = entry.partition("\t")
        if fields.startswith("100"):  # the mode of a file, not of a symbolic link or submodule
            blobs[path] = fields.split(" ")[1]
    return blobs


def _state_elsewhere(link: Link, root: Path, tracked: Mapping[str, str], holds: Holds | None) -> tuple[State, str]:
    """Return the state of a document that is not at its path."""
    name = PurePosixPath(link.path).name
    last = link.blob or _last_blob(root, link.path)
    paths = (path for path, blob in tracked.items() if blob == last and path != link.path)
    moved = min(paths, key=lambda path: (PurePosixPath(path).name != name, path), default="")
    if not moved:
        return ("gone" if _is_deleted(root, link, last) else "out of reach"), link.path
    try:
        content = _read(root, moved)
    except FileNotFoundError:  # a sparse checkout leaves it out
        content = None
    return ("moved" if content is None or _is_same(link, moved, content, holds) else "changed"), moved


def _is_deleted(root: Path, link: Link, last: str) -> bool:
    """Whether HEAD's history has the linked content at the path and a commit that deleted the path, and HEAD lacks the
    path and the content `last`, which that commit may have moved.

    The content is required because another branch may have a new document at a path that HEAD's branch once deleted.
    """
    if _git(root, "ls-tree", "HEAD", "--", link.path) != "":
        return False
    rows = _changes(root, link.path)
    present = _git(root, "ls-tree", "-r", "--full-tree", "HEAD")
    if not last or present is None or last in present:
        return False
    is_known = not link.blob or any(link.blob in row[2:4] for row in rows)
    return is_known and any(row[-1] == "D" for row in rows)


def _last_blob(root: Path, path: str) -> str:
    """Return the blob that a path has at HEAD, or had when a commit deleted it; "" if git knows none."""
    present = (_git(root, "ls-tree", "HEAD", "--", path) or "").partition("\t")[0].split(" ")
    if len(present) == 3:
        return present[2]
    return next((row[2] for row in _changes(root, path) if row[-1] == "D"), "")


def _changes(root: Path, path: str) -> list[list[str]]:
    """Return old and new mode, old and new blob, and status of each change of a path in HEAD's history, last first."""
    changes = _git(
        root, "log", "--format=", "--raw", "--no-abbrev", "--full-history", "--no-show-signature", "HEAD", "--", path
    )
    # a line is ":old_mode new_mode old_blob new_blob status", a tab, the path
    return [line.partition("\t")[0].split(" ") for line in (changes or "").split("\n") if line.startswith(":")]


def _is_same(link: Link, path: str, content: bytes, holds: Holds | None) -> bool:
    if holds is None:
        return _blob(content) == link.blob or _section(content, path, link.anchor) == link.section
    text = _text(content)
    if not holds(text):
        return False
    part = _part(text, link.anchor) if link.anchor and _is_markdown(path) else None
    return part is None or holds(part)


def _read(root: Path, path: str) -> bytes | None:
    """Return a file's bytes, or None if it is out of reach: outside the root, no regular file, unreadable or too large.
    Raises FileNotFoundError if the root is there and has no such file."""
    try:
        if not os.path.isdir(root) or not (place := _place(root, path)):
            return None
        with open(os.path.join(os.path.realpath(root), place), "rb", opener=_opened) as file:
            content = file.read(LIMIT + 1) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None
    except OSError as error:
        if error.errno in _NOT_THERE:
            raise FileNotFoundError(error.errno, error.strerror, path) from error
        return None
    except ValueError:  # a path with a NUL, or that is not UTF-8
        return None
    return content if content is not None and len(content) <= LIMIT else None


def _opened(name: str, _flags: int) -> int:
    """Open without following a symbolic link or waiting for the writer of a pipe."""
    return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def _place(root: Path, path: str) -> str:
    """Return the path below the root without symbolic links and `..`, "" if it leads out of the root or is the root.
    Raises ValueError for a path with a NUL, or that is not UTF-8."""
    top = os.path.realpath(root)
    place = Path(os.path.realpath(os.path.join(top, path)))
    if place == Path(top) or not place.is_relative_to(top):
        return ""
    return os.fsencode(place.relative_to(top)).decode("utf-8")


def _section(content: bytes, path: str, anchor: str) -> str | None:
    """Return the hash of the text under the anchor, of the whole text without one; None if the heading is not there."""
    text: str | None = _text(content)
    if anchor and _is_markdown(path):
        text = _part(text, anchor)
    if text is None:
        return None
    return blake2b(_folded(text).encode(errors="surrogateescape"), digest_size=8).hexdigest()


def _text(content: bytes) -> str:
    return content.decode("utf-8-sig", errors="surrogateescape").replace("\r\n", "\n").replace("\r", "\n")


def _part(text: str, anchor: str) -> str | None:
    """Return the text of all sections with this anchor and of their subsections, or None without such a section."""
    rows = text.split("\n")
    parts = ["\n".join(rows[part.start : part.stop]) for name, part in _sections(text) if name == anchor]
    return "\n".join(parts) if parts else None


@lru_cache(maxsize=4)  # many links lead to one document
def _sections(text: str) -> tuple[tuple[str, range], ...]:
    """Return the anchor of each heading, and the rows below it up to the next heading that is not below it."""
    rows = text.split("\n")
    headings = list(_headings(rows))
    above: list[tuple[int, str]] = []
    sections: list[tuple[str, range]] = []
    for at, (level, words, _, start) in enumerate(headings):
        above = [*(heading for heading in above if heading[0] < level), (level, words)]
        following = (headings[later] for later in range(at + 1, len(headings)))
        end = next((first for next_level, _, first, _ in following if next_level <= level), len(rows))
        sections.append((SEPARATOR.join(heading for _, heading in above), range(start, end)))
    return tuple(sections)


def _headings(rows: list[str]) -> Iterator[tuple[int, str, int, int]]:
    """Yield level, words, first row and the row after each heading outside of lists and quotes, by CommonMark."""
    from markdown_it import MarkdownIt  # here, for the start of the daemon

    parser = MarkdownIt("commonmark", {"maxNesting": _NESTING}).enable("table")
    parser.core.ruler.enableOnly(["block"])
    front = _front_matter(rows)
    tokens = parser.parse("\n".join([*[""] * front, *rows[front:]]))
    for token, following in pairwise(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map:
            first, after = token.map
            yield int(token.tag[1:]), _folded(following.content), first, after


def _front_matter(rows: list[str]) -> int:
    """Return the number of rows of the metadata above the text, whose last row would read as a heading's underline."""
    if rows[0].strip() != "---":
        return 0
    return next((at + 1 for at, row in enumerate(rows) if at and row.strip() == "---"), 0)


def _is_markdown(path: str) -> bool:
    return PurePosixPath(path).suffix.lower() in _MARKDOWN


def _is_binary(content: bytes) -> bool:
    return b"\0" in content


def _blob(content: bytes) -> str:
    return sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _folded(text: str) -> str:
    return " ".join(text.split())


def _git(root: Path, *arguments: str) -> str | None:
    """Return what git prints, None if it fails. Settings of a repository that start programs are off."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    variables |= {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}
    settings = ("-c", "core.fsmonitor=false", "-c", "log.follow=false")
    command = ["git", "-C", str(root), "--no-pager", "--literal-pathspecs", *settings, *arguments]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=GIT_S, env=variables
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout.decode(errors="replace")
