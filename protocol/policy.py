"""A pool's policy: the values of `.pi/pi.config.yaml`, and the requests about it (G8, Q11).

Invariants: the defaults are those of a pool without a policy; a project's file is only stricter than they are until the
user accepts what it loosens; only the user sends these requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec

from .curation import CURATOR, MAINTAINER
from .record import Layer
from .request_fields import Request

POLICY_FILE = ".pi/pi.config.yaml"
"""Where the policy lies in a repository."""

LENS_FILE = ".pi.project.yaml"
"""The file that says what one part of a repository needs from its pool (P6)."""

POLICY_BYTES = 64_000

Records = Annotated[int, msgspec.Meta(ge=0, le=100_000)]
Times = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Days = Annotated[int, msgspec.Meta(ge=1, le=36_500)]
Boost = Annotated[float, msgspec.Meta(ge=0, le=10)]
Tag = Annotated[str, msgspec.Meta(min_length=1, max_length=80)]
Tags = Annotated[tuple[Tag, ...], msgspec.Meta(max_length=64)]

SAME_TAG: dict[str, frozenset[str]] = {
    "preferences": frozenset({"preference", "persona"}),
    "identity": frozenset({"identity", "persona"}),
    "constraints": frozenset({"principle", "convention"}),
    "workflow": frozenset({"convention", "procedure"}),
    "playbook": frozenset({"convention", "procedure", "lesson"}),
    "architecture": frozenset({"decision"}),
    "domain": frozenset({"fact", "purpose", "lesson"}),
}
"""The types of memd's records that count as a tag of a policy, beside the tag itself."""


class IdentityLayer(msgspec.Struct, frozen=True, kw_only=True):
    """L1. `allowed_tags`: () for any."""

    max_records: Records = 40
    allowed_tags: Tags = ()
    write_policy: Literal["manual_or_curator_only", "manual_only"] = "manual_or_curator_only"


class PlaybookLayer(msgspec.Struct, frozen=True, kw_only=True):
    """L2. `allowed_tags`: () for any."""

    max_records: Records = 300
    allowed_tags: Tags = ()
    write_policy: Literal["curator_or_maintainer_only", "curator_only", "manual_only"] = "curator_or_maintainer_only"


class ProjectLayer(msgspec.Struct, frozen=True, kw_only=True):
    """L3. `capturer_only`: an agent reads, and only memd's own capture writes."""

    max_records_per_project: Records = 2_000
    write_policy: Literal["auto_ok", "capturer_only"] = "auto_ok"


class Layers(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of each layer."""

    L1: IdentityLayer = IdentityLayer()
    L2: PlaybookLayer = PlaybookLayer()
    L3: ProjectLayer = ProjectLayer()


class ToPlaybook(msgspec.Struct, frozen=True, kw_only=True):
    """What a record needs to be proposed for L2."""

    requires_evidence_count: Times = 2
    min_confidence: Share = 0.75


class ToIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """What a record needs to be proposed for L1."""

    requires_evidence_count: Times = 3
    min_confidence: Share = 0.85


class Deprecation(msgspec.Struct, frozen=True, kw_only=True):
    """What a record needs to be proposed for deprecation."""

    contradiction_evidence_required: Times = 1


class ConfidenceRules(msgspec.Struct, frozen=True, kw_only=True):
    """When a role may propose."""

    promote_to_L2: ToPlaybook = ToPlaybook()
    promote_to_L1: ToIdentity = ToIdentity()
    deprecate: Deprecation = Deprecation()


class Decay(msgspec.Struct, frozen=True, kw_only=True):
    """Active days after which an unused record of L3 has faded."""

    L3_after_days: Days = 45


class ReviewPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Calendar days after which records are looked at again."""

    semi_stable_days: Days = 30
    stable_days: Days = 120
    decay: Decay = Decay()


class TimeWindow(msgspec.Struct, frozen=True, kw_only=True):
    """Days of L3 in a context package."""

    L3_default: Days = 14


class Retrieval(msgspec.Struct, frozen=True, kw_only=True):
    """What a context package has. `always_load`: files whose records are always part of it; L1 always is."""

    always_load: Annotated[tuple[str, ...], msgspec.Meta(max_length=32)] = ()
    tag_boost: dict[Tag, Boost] = {}
    time_window_days: TimeWindow = TimeWindow()


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """The policy of a pool."""

    layers: Layers = Layers()
    confidence_rules: ConfidenceRules = ConfidenceRules()
    review_policy: ReviewPolicy = ReviewPolicy()
    retrieval: Retrieval = Retrieval()

    def allows(self, layer: Layer, tags: Iterable[str]) -> bool:
        """Whether a record with these tags may be proposed for a layer."""
        allowed = {"L1": self.layers.L1.allowed_tags, "L2": self.layers.L2.allowed_tags}.get(layer, ())
        return not allowed or has_tag(allowed, tags)

    def writers(self, layer: Layer) -> tuple[str, ...]:
        """Return the roles that may propose changes of L1 or L2."""
        if layer == "L1":
            return () if self.layers.L1.write_policy == "manual_only" else (CURATOR,)
        return {"curator_or_maintainer_only": (CURATOR, MAINTAINER), "curator_only": (CURATOR,)}.get(
            self.layers.L2.write_policy, ()
        )

    @property
    def agent_only_reads(self) -> bool:
        """Whether an agent's tool may write nothing into the pool (G1)."""
        return self.layers.L3.write_policy == "capturer_only"


def with_types(tags: Iterable[str]) -> tuple[str, ...]:
    """Return tags of a policy with the types of records that count as one of them."""
    return tuple(dict.fromkeys(name for tag in tags for name in (tag, *sorted(SAME_TAG.get(tag.lower(), ())))))


def has_tag(wanted: Iterable[str], tags: Iterable[str]) -> bool:
    """Whether a record with these tags has one of the wanted ones, by its name or by its type."""
    own = {tag.lower() for tag in tags}
    return any(tag.lower() in own for tag in with_types(wanted))


# --- requests --------------------------------------------------------------------------------------------------------
class GetPolicy(Request, tag="policy", frozen=True, kw_only=True):
    """Return the policy of a pool, or of the project of the folder `cwd`."""

    pool: str = ""
    cwd: str = ""


class CheckPolicy(Request, tag="check_policy", frozen=True, kw_only=True):
    """Return what these bytes would be as a policy file; it changes nothing. `pool` and `cwd` as in `policy`."""

    data: Annotated[bytes, msgspec.Meta(max_length=2_000_000)]
    pool: str = ""
    cwd: str = ""


class AcceptPolicy(Request, tag="accept_policy", frozen=True, kw_only=True):
    """Let a pool's policy file loosen what it asks for. `digest`: of the text that the user saw. Raises InvalidRequest
    if the file is another one by now."""

    digest: str
    pool: str = ""
    cwd: str = ""


class Loosened(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that a file makes looser than the default: its name, the default, and what the file asks for."""

    rule: str
    default: str
    asked: str


class PolicyState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Reply to the requests about a policy. `policy`: what is in force, or with `check_policy` would be.

    `file`: where the file lies, "" for none; `digest`: of its text; `trusted`: memd reads the project's `.pi` folder;
    `accepted`: the user accepted what it loosens; `loosened`: the rules that it loosens, in force only if `accepted`;
    `problem`: why memd does not take the file, while the policy before stays; `notes`: keys that memd does not know.
    """

    pool: str
    policy: Policy
    title: str = ""
    file: str = ""
    digest: str = ""
    trusted: bool = False
    accepted: bool = False
    loosened: tuple[Loosened, ...] = ()
    problem: str = ""
    notes: tuple[str, ...] = ()


# --- the lens of a part of a repository ------------------------------------------------------------------------------
class MemoryScope(msgspec.Struct, frozen=True, kw_only=True):
    """What a part of a repository needs. `L2_tags`: () for the whole playbook; `L3_paths`: recent records whose links
    lie there come first."""

    L2_tags: Tags = ()
    L3_paths: Annotated[tuple[str, ...], msgspec.Meta(max_length=64)] = ()


class ProjectLens(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `.pi.project.yaml` (P6)."""

    project_slug: Annotated[str, msgspec.Meta(max_length=80, pattern=r"^[A-Za-z0-9._-]*$")] = ""
    domains: Tags = ()
    memory_scope: MemoryScope = MemoryScope()
