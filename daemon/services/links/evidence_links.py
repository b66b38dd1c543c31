"""The link of a file that the user names as evidence: made when it is named, read when it is checked (C3, R5)."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from msgspec.structs import replace

from ....protocol.errors import InvalidRequest
from ....protocol.record import Artifact
from ..outgoing_screen import without_secrets
from .document_links import SEPARATOR, Link, anchors_of, link_to, root_of

SHOWN = 8
"""Headings that an error names."""

_SLUG = re.compile(r"[^\w\- ]")


def linked(artifact: Artifact) -> Artifact:
    """Return the artifact of a file with its link, any other unchanged. Raises InvalidRequest for a heading that the
    file lacks."""
    if artifact.type != "file":
        return artifact
    path, heading = _divided(artifact.ref)
    file = Path(path)
    root = root_of(file)
    anchor = _anchor(root, file, heading) if heading else ""
    link = link_to(root, os.path.relpath(file, root), anchor)
    if link is None:
        return artifact
    return replace(artifact, anchor=anchor, blob=link.blob, section=link.section, root=str(root))


def link_of(artifact: Artifact) -> tuple[Path, Link] | None:
    """Return an artifact's link and its root, None for an artifact without a link."""
    if not artifact.root:
        return None
    path = os.path.relpath(_file_of(artifact), artifact.root)
    return Path(artifact.root), Link(path=path, anchor=artifact.anchor, blob=artifact.blob, section=artifact.section)


def _divided(ref: str) -> tuple[str, str]:
    """Return the file that a reference names, and the heading after it; ("…", "") if nothing exists there."""
    if os.path.lexists(ref):
        return ref, ""
    ends = [at for at, character in enumerate(ref) if character == "#"]
    end = next((at for at in reversed(ends) if os.path.isfile(ref[:at])), len(ref))
    return ref[:end], ref[end + 1 :].strip()


def _file_of(artifact: Artifact) -> str:
    """Return the file of a reference, which need not exist any more."""
    if artifact.anchor:
        for at, character in enumerate(artifact.ref):
            if character == "#" and _names(artifact.ref[at + 1 :], artifact.anchor):
                return artifact.ref[:at]
    return artifact.ref


def _anchor(root: Path, file: Path, heading: str) -> str:
    """Return the anchor of a heading that the user wrote. Raises InvalidRequest."""
    anchors = anchors_of(root, os.path.relpath(file, root))
    if anchors is None:
        raise InvalidRequest(
            f"{file.name} has no headings that memd can read",
            hint="name a Markdown file, or the file without a heading",
        )
    shown = [anchor for anchor in anchors if without_secrets(anchor) == anchor]
    exact = [anchor for anchor in shown if _plain(anchor) == _plain(heading)]
    named = exact or [anchor for anchor in shown if _names(heading, anchor)]
    if len(named) == 1:
        return named[0]
    problem = (
        f"{file.name} has {len(named)} headings {heading!r}" if named else f"{file.name} has no heading {heading!r}"
    )
    choices = named or _near(heading, shown)
    hint = f"choose from: {'; '.join(choices[:SHOWN])}" if choices else "name the file without a heading"
    raise InvalidRequest(problem, hint=hint)


def _near(heading: str, anchors: Sequence[str]) -> list[str]:
    """Return the anchors whose last heading is similar; if there are none, the first ones."""
    last = {anchor: _plain(anchor.split(SEPARATOR)[-1]) for anchor in anchors}
    similar = get_close_matches(_plain(heading.rsplit(SEPARATOR, maxsplit=1)[-1]), last.values(), SHOWN)
    return [anchor for anchor in anchors if last[anchor] in similar] or list(anchors[:SHOWN])


def _names(heading: str, anchor: str) -> bool:
    """Whether a user's words mean an anchor: all of it, its last headings, or the last one as links on web pages do."""
    words, whole = _plain(heading), _plain(anchor)
    slug = _SLUG.sub("", whole.split(SEPARATOR)[-1]).replace(" ", "-")
    return words in (whole, slug) or whole.endswith(f"{SEPARATOR}{words}")


def _plain(words: str) -> str:
    return " ".join(words.split()).casefold()
