"""A repository's commit messages as one document, `git:<root commit>`, the oldest commit first.

A commit is the user's own if its author's address is the user's: one of git's settings `user.email`, an address that
the mail map named by git's setting `mailmap.file` joins to it, or one of the setting `own_addresses`. The mail map
within the repository is other people's word, so it only corrects names.

The commit's hash names the turn; times have the author's offset; trailers (`Signed-off-by` and the like) are left out.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from ...protocol.errors import InvalidRequest, MemdError, Unavailable
from ...protocol.event import Origin, Wrote
from ...protocol.instant import parse
from ...protocol.text_limits import TEXT_LIMIT
from .transcript import AccountBuilder, CapturedSession, Transcript

HOST = "git"
NEWEST = 500
_FORMAT = "%H%x1f%P%x1f%aI%x1f%aN%x1f%ae%x1f%B"
_ADDRESS = re.compile(r"<([^<>\s]+)>")
_TRAILER = re.compile(
    r"(signed-off|co-authored|co-developed|reviewed|acked|tested|reported|suggested|helped|approved)-by|"
    r"cc|fixes|change-id|reviewed-on|git-svn-id|cherry-picked-from|generated-by|assisted-by",
    re.IGNORECASE,
)


def read(path: Path, newest: int = NEWEST, own_addresses: Iterable[str] = ()) -> Transcript:
    """Read the newest commits reachable from HEAD. `own_addresses`: of the user, beside those that git knows. Raises
    InvalidRequest without a repository or a commit."""
    top = _git(path, "rev-parse", "--show-toplevel").strip()
    root = _git(path, "rev-list", "--max-parents=0", "--first-parent", "HEAD").split()[-1]
    listed = _git(path, "log", "-z", f"--max-count={newest}", f"--format={_FORMAT}", "--no-show-signature", "HEAD")
    account = AccountBuilder()
    own = _own_addresses(path, own_addresses)
    wrote = [event for entry in reversed(listed.rstrip("\0").split("\0")) if (event := _event(entry, own, account))]
    origin = Origin(host=HOST, session=root, cwd=top, live=False, title=Path(top).name)
    sessions = (CapturedSession(origin=origin, events=tuple(wrote)),) if wrote else ()
    return Transcript(path=top, sessions=sessions, account=account.close())


def _own_addresses(path: Path, stated: Iterable[str]) -> frozenset[str]:
    """Return the user's addresses in lower case."""
    own = {*stated, *_setting(path, "--get-all", "user.email")}
    for name in _setting(path, "--type=path", "--get-all", "mailmap.file"):
        try:
            rows = Path(name).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        for row in rows:
            addresses = _ADDRESS.findall(row.partition("#")[0])
            own.update(
                addresses if {address.lower() for address in own}.intersection(map(str.lower, addresses)) else ()
            )
    return frozenset(address.strip().lower() for address in own if address.strip())


def author_of(path: Path) -> str:
    """Return the address of the author who added a file to its repository, "" if git does not have it."""
    try:
        added = _git(path.parent, "log", "--format=%ae", "--diff-filter=A", "--max-count=1", "--", path.name)
        return added.strip().lower()
    except MemdError:
        return ""


def is_own(path: Path, address: str) -> bool:
    """Whether an author's address is the user's, as far as git knows."""
    return address.strip().lower() in _own_addresses(path, ())


def _setting(path: Path, *arguments: str) -> list[str]:
    """Return the values of a setting of git, none where it is not set."""
    try:
        return _git(path, "config", *arguments).split("\n")[:-1]
    except MemdError:
        return []


def _event(entry: str, own: frozenset[str], account: AccountBuilder) -> Wrote | None:
    parts = entry.lstrip("\n").split("\x1f", 5)
    if len(parts) < 6:
        account.refuse("git printed an incomplete commit")
        return None
    commit, parents, at, author, address, message = parts
    text = without_trailers(message)
    try:
        parse(at)
    except MemdError as error:
        account.refuse(f"commit {commit[:12]}: {error.message}")
        return None
    if not text:
        account.drop("no message")
    elif " " in parents and "\n" not in text:
        account.drop("merge")
    elif len(text) > TEXT_LIMIT:
        account.refuse(f"commit {commit[:12]}: a message of {len(text):,} characters")
    else:
        account.take()
        return Wrote(turn=commit, at=at, text=text, author=author, own=address.strip().lower() in own)
    return None


def without_trailers(message: str) -> str:
    """Return the message without the trailers of its last paragraph."""
    paragraphs = message.replace("\r\n", "\n").strip().split("\n\n")
    if len(paragraphs) > 1:
        paragraphs[-1] = "\n".join(line for line in paragraphs[-1].split("\n") if not _is_trailer(line))
    return "\n\n".join(paragraphs).strip()


def _is_trailer(line: str) -> bool:
    token, colon, _ = line.partition(":")
    return bool(colon) and _TRAILER.fullmatch(token.strip()) is not None


def _git(path: Path, *arguments: str) -> str:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    variables |= {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    command = ["git", "-C", str(path), "--no-pager", "-c", "i18n.logOutputEncoding=UTF-8", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=60, env=variables)
    except FileNotFoundError as error:
        raise InvalidRequest("git is not installed", hint="install git, or import something else") from error
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"git took longer than a minute in {path}", hint="import fewer commits: --newest") from error
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().removeprefix("fatal: ").partition("\n")[0]
        raise InvalidRequest(
            f"no commits to read in {path}: {reason or 'git failed'}", hint="name a folder inside of a git repository"
        )
    return done.stdout.decode(errors="replace")
