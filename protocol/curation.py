"""The curator's request and its reply: what it would move into a pool's playbook, by which evidence (G3, G4).

Invariants: a proposal changes nothing; its statement is one that somebody said or wrote, never a summary; evidence
is a type, a day and a durable thing, never a quote.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from .record import Layer
from .request_fields import Request

CURATOR, MAINTAINER = "curator", "maintainer"
ROLES = frozenset({CURATOR, MAINTAINER})
"""The roles that propose changes of the playbook; the user decides."""


class LayerRule(msgspec.Struct, frozen=True, kw_only=True):
    """What a layer asks of a statement: independent evidence, confidence, and room. `tags`: one of which it needs, ()
    for none; `writers`: the roles that may propose for it."""

    evidence: int
    confidence: float
    most: int
    tags: tuple[str, ...] = ()
    writers: tuple[str, ...] = (CURATOR, MAINTAINER)


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of promotion of one pool. `project_most`: records of a project's L3; `contradictions`: independent ones
    from which a record of the playbook is doubtful; `semi_days`, `stable_days`: until the next review."""

    identity: LayerRule = LayerRule(evidence=3, confidence=0.85, most=40)
    playbook: LayerRule = LayerRule(evidence=2, confidence=0.75, most=300)
    project_most: int = 2000
    contradictions: int = 1
    semi_days: int = 30
    stable_days: int = 120

    def of(self, layer: Layer) -> LayerRule:
        """Return the rule of L1 or L2."""
        return self.identity if layer == "L1" else self.playbook


class Curate(Request, tag="curate", frozen=True, kw_only=True):
    """Propose what a pool's playbook should take in, merge, review or give up; of every pool for "". `dry_run` proposes
    nothing, but reports all that it would."""

    pool: Annotated[str, msgspec.Meta(max_length=512)] = ""
    dry_run: bool = False


ProposalKind = Literal["promote", "merge", "deprecate", "review"]


class CuratedEvidence(msgspec.Struct, frozen=True, array_like=True):
    """One independent piece of evidence: its type, its day or durable thing, and a note."""

    type: str
    ref: str
    note: str = ""


class CuratedProposal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A proposal. `id`: of the proposal in the inbox; `kind` `promote`: the record becomes part of `layer`; `merge`: it
    says what `against` says; `deprecate`: it no longer holds; `review`: the patch notes its present confidence.
    `let_go`: a record that would leave the layer, which is full."""

    id: str
    kind: ProposalKind
    by: str
    pool: str
    record: str
    statement: str
    title: str = ""
    layer: Layer | Literal[""] = ""
    confidence: float = 0.0
    evidence: tuple[CuratedEvidence, ...] = ()
    why: str = ""
    change_condition: str = ""
    against: str = ""
    against_statement: str = ""
    let_go: str = ""
    let_go_statement: str = ""


class Curation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Reply to `curate`. `left_out`: why statements that came up more than once are not proposed, and how often;
    `open`: proposals of both roles that wait in the inbox; `lapsed`: those that waited too long and left it; `notes`:
    what the user should know about the run."""

    proposals: tuple[CuratedProposal, ...] = ()
    left_out: tuple[tuple[str, int], ...] = ()
    read: int = 0
    open: int = 0
    lapsed: int = 0
    notes: tuple[str, ...] = ()
    dry_run: bool = False
