"""Commits one file on a new branch of a repository, without a checkout (K3, K4).

Invariant: only objects and one new branch are written; the work tree, the index and every other branch stay. No hook
runs, and nothing is signed.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from ...protocol.errors import InvalidRequest


def commit_on_branch(root: Path, file: Path, text: str, name: str, message: str) -> str:
    """Commit a file's text onto HEAD as `memd/skill/NAME-N`, and return the branch. Raises InvalidRequest."""
    path = file.resolve().relative_to(root.resolve()).as_posix()
    head = _git(root, "rev-parse", "--verify", "HEAD^{commit}")
    mode = _git(root, "ls-tree", "HEAD", "--", path).partition(" ")[0]
    if mode not in ("", "100644", "100755"):
        raise InvalidRequest(f"{path} is no file in the last commit", hint="change it yourself")
    blob = _git(root, "hash-object", "-w", "--stdin", given=text)
    with TemporaryDirectory() as folder:
        index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        _git(root, "read-tree", head, more=index)
        _git(root, "update-index", "--add", "--cacheinfo", f"{mode or '100644'},{blob},{path}", more=index)
        tree = _git(root, "write-tree", more=index)
    commit = _git(root, "commit-tree", tree, "-p", head, "-m", message)
    taken = {ref.rpartition("memd/skill/")[2] for ref in _git(root, "for-each-ref", "--format=%(refname)").split()}
    number = next(each for each in count(1) if f"{name}-{each}" not in taken)
    branch = f"memd/skill/{name}-{number}"
    _git(root, "update-ref", f"refs/heads/{branch}", commit, "")
    return branch


def committed(root: Path, file: Path) -> bytes | None:
    """Return the bytes that a file has in the last commit, None if that has no such file. Raises InvalidRequest."""
    path = file.resolve().relative_to(root.resolve()).as_posix()
    if not _git(root, "for-each-ref", "--count=1") or not _git(root, "ls-tree", "HEAD", "--", path):
        return None
    return _run(root, ("cat-file", "blob", f"HEAD:{path}"), {}, None)


def _git(root: Path, *arguments: str, given: str | None = None, more: Mapping[str, str] | None = None) -> str:
    return _run(root, arguments, more or {}, given).decode("utf-8", "replace").strip()


def _run(root: Path, arguments: tuple[str, ...], more: Mapping[str, str], given: str | None) -> bytes:
    """Run git in a repository, and return what it prints. Raises InvalidRequest."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or "_NAME" in name}
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            env={**kept, **more},
            input=(given or "").encode(),
            capture_output=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise InvalidRequest(
            "git is not installed", hint="install git, or copy what `memd skill show` prints"
        ) from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise InvalidRequest(f"git {arguments[0]} failed in {root}: {said}", hint="nothing was changed")
    return done.stdout
