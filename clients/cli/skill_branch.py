"""Commits one file on a new branch of a repository, without a checkout (K3, K4).

Invariant: only objects and one new branch are written; the work tree, the index and every other branch stay.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path, PurePosixPath

import pygit2
from pygit2.enums import FileMode

from ...protocol.errors import InvalidRequest


def commit_on_branch(root: Path, file: Path, text: str, name: str, message: str) -> str:
    """Commit a file's text onto HEAD as `memd/skill/NAME-N`, and return the branch. Raises InvalidRequest."""
    try:
        repository = pygit2.Repository(str(root))
        head = repository.head.peel(pygit2.Commit)
        author = repository.default_signature
        path = PurePosixPath(file.relative_to(root).as_posix())
        blob = repository.create_blob(text.encode())
        tree = _with_file(repository, head.tree, path.parts, blob)
        names = (f"memd/skill/{name}-{number}" for number in count(1))
        branch = next(each for each in names if repository.branches.local.get(each) is None)
        repository.create_commit(f"refs/heads/{branch}", author, author, message, tree, [head.id])
    except (pygit2.GitError, KeyError, OSError, ValueError) as error:
        hint = "it needs a commit to begin at, and `git config user.name` and `user.email`"
        raise InvalidRequest(f"no branch can be made in {root}: {error}", hint=hint) from error
    return branch


def is_tracked(root: Path, file: Path) -> bool:
    """Whether the last commit of a repository has a file."""
    try:
        repository = pygit2.Repository(str(root))
        return file.relative_to(root).as_posix() in repository.head.peel(pygit2.Tree)
    except (pygit2.GitError, ValueError, OSError):
        return False


def _with_file(
    repository: pygit2.Repository, tree: pygit2.Tree | None, parts: tuple[str, ...], blob: pygit2.Oid
) -> pygit2.Oid:
    """Write a tree that has a file below it, and return its id. Raises ValueError where a folder is no folder."""
    builder = repository.TreeBuilder(tree) if tree is not None else repository.TreeBuilder()
    name, *rest = parts
    if rest:
        below = tree[name] if tree is not None and name in tree else None
        if below is not None and not isinstance(below, pygit2.Tree):
            raise ValueError(f"{name} is no folder in the last commit")
        builder.insert(name, _with_file(repository, below, tuple(rest), blob), FileMode.TREE)
    else:
        builder.insert(name, blob, FileMode.BLOB)
    return builder.write()
