"""The lens of a part of a repository on its pool: which playbook it needs, and which recent records come first (P6).

Invariants: a lens chooses from one pool and makes none; a principle is always part of the playbook; a recent record is
never hidden by a lens.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from ...protocol.policy import ProjectLens, has_tag
from ...protocol.record import PRINCIPLE, Record

_MARKDOWN = "markdown:"


class LocatedLens(NamedTuple):
    """A lens with the folder of its file and the root of the repository, both resolved. `notes`: what memd does not
    know in the file, or why it does not read it."""

    lens: ProjectLens
    folder: str
    root: str
    notes: tuple[str, ...] = ()

    @property
    def tags(self) -> frozenset[str]:
        """The tags of the playbook that it needs, with its domains; empty for the whole playbook."""
        named = self.lens.memory_scope.L2_tags
        return frozenset((*(tag.lower() for tag in named), *self.domains)) if named else frozenset()

    @property
    def domains(self) -> frozenset[str]:
        """The tags that records of its domains have."""
        return frozenset(f"domain:{name.lower()}" for name in self.lens.domains)

    def needs(self, record: Record) -> bool:
        """Whether a record of the playbook is part of it."""
        return not self.tags or PRINCIPLE in record.tags or has_tag(self.tags, record.tags)

    def is_near(self, record: Record, cwd_of: Callable[[str], str]) -> bool:
        """Whether a record's session ran in the lens's folder, or its file or a linked one lies under its paths.
        `cwd_of`: the folder of a document's session."""
        source = record.provenance.source
        files = [artifact.ref for artifact in record.artifacts if artifact.type == "file"]
        if source.startswith(_MARKDOWN):
            files.append(source.removeprefix(_MARKDOWN))
        if any(_is_below(file, place) for file in files for place in self._places):
            return True
        return self.folder != self.root and _is_below(cwd_of(source), self.folder)

    @property
    def _places(self) -> tuple[str, ...]:
        """The folders and files of `L3_paths`, below the root and below the lens's own folder."""
        bases = dict.fromkeys((self.root, self.folder))
        return tuple(
            os.path.normpath(os.path.join(base, path)) for base in bases for path in self.lens.memory_scope.L3_paths
        )


def _is_below(path: str, place: str) -> bool:
    path = path.partition("#")[0]
    return path == place or path.startswith(os.path.join(place, ""))
