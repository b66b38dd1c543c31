"""The policy service: what each pool's `pi.config.yaml` decides, and `memd policy` (G8, Q11).

Invariants: only the files of a project that the user trusts are read, by the daemon's background thread; the text that
is in force is in the journal, and replay reads that, never a file; a file that memd cannot take changes nothing; what
a file loosens waits for the user.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from ....protocol.curation import LayerRule, Thresholds
from ....protocol.errors import BadConfig, InvalidRequest, MemdError
from ....protocol.operation import PolicySet
from ....protocol.patch_file import PLAYBOOK
from ....protocol.policy import (
    POLICY_FILE,
    AcceptPolicy,
    CheckPolicy,
    GetPolicy,
    Loosened,
    Policy,
    PolicyState,
    with_types,
)
from ....stages.batch import PERSONAL
from ...config import Config
from ...forgetting_rules import Rules
from ...projections.patches import PolicyEntry
from ...projections.pool_directory import OperationCache
from ..core import Core
from ..events import Topic
from ..project_lens import LocatedLens
from ..service import Handlers, Service, owner
from ..write_thread import Writer
from .loosening import loosened, stricter
from .policy_file import ReadPolicy, read_policy
from .policy_files import Stamp, content_of, folders, located_lens, policy_stamp

EVERY_S = 5.0
"""Seconds between two looks for changed files."""

WAIT_S = 2.0
"""Seconds that a request waits for a look, because a disk may not answer."""

log = logging.getLogger("memd.policy")


class InForce(NamedTuple):
    """A policy in force, from a text of the journal. `rules`: the rules of forgetting with its days."""

    entry: PolicyEntry
    policy: Policy
    rules: Rules
    notes: tuple[str, ...]
    problem: str


class Seen(NamedTuple):
    """A file as memd last read it, and why memd did not take it, "" if it did."""

    stamp: Stamp | None
    problem: str = ""


class PolicyService(Service):
    """The policies of all pools. Any thread may read them; they change on the background thread."""

    name = "policy"

    def __init__(
        self, core: Core, writer: Callable[[], Writer], *, pool_of: Callable[[str], str], root_of: Callable[[str], str]
    ) -> None:
        """`writer`: the write thread, which is built later; `pool_of`: the pool of a folder's project; `root_of`: the
        root of a folder's repository, "" for none."""
        self._stores, self._directory, self._scheduler = core.stores, core.directory, core.scheduler
        self._config, self._writer, self._gate = core.config, writer, core.gate
        self._pool_of, self._root_of = pool_of, root_of
        self._in_force: Mapping[str, InForce] = {}
        self._seen: dict[str, Seen] = {}
        self._looking = threading.Lock()
        self._trusted, self._folders = OperationCache(core.stores), OperationCache(core.stores)
        self.changed: Topic[None] = Topic()
        """Policies in force changed."""

    @property
    def handlers(self) -> Handlers:
        return {
            GetPolicy: owner("slow", self.get),
            CheckPolicy: owner("slow", self.check),
            AcceptPolicy: owner("slow", self.accept),
        }

    def start(self) -> None:
        """Put the policies of the journal in force, then follow the files."""
        self._enforce()
        self._scheduler.every(EVERY_S, self.look, "policy files")
        if self._trusted_pools():
            self._scheduler.soon(self.look, "policy files now")

    def reload(self, config: Config) -> None:
        """Follow the defaults of memd.toml."""
        self._enforce(anew=True)

    # --- what is in force ----------------------------------------------------------------------------------------
    def policy(self, pool: str) -> Policy:
        """Return the policy in force in a pool."""
        known = self._in_force.get(pool)
        return known.policy if known else self.base

    @property
    def base(self) -> Policy:
        """The policy of a pool without a file, with the numbers of memd.toml."""
        return _base(self._config())

    def boosts(self, pool: str) -> Mapping[str, float]:
        """Return the factors of tags in a pool."""
        known = self._in_force.get(pool)
        return known.policy.retrieval.tag_boost if known else self._config().tag_boost

    def rules(self, pool: str) -> Rules:
        """Return the rules of forgetting and review in a pool."""
        known = self._in_force.get(pool)
        return known.rules if known else self._config().forgetting

    def thresholds(self, pool: str) -> Thresholds:
        """Return what the curator and the maintainer need for a proposal in a pool (G3)."""
        policy = self.policy(pool)
        layers, rules, review = policy.layers, policy.confidence_rules, policy.review_policy
        return Thresholds(
            identity=LayerRule(
                evidence=rules.promote_to_L1.requires_evidence_count,
                confidence=rules.promote_to_L1.min_confidence,
                most=layers.L1.max_records,
                tags=with_types(layers.L1.allowed_tags),
                writers=policy.writers("L1"),
            ),
            playbook=LayerRule(
                evidence=rules.promote_to_L2.requires_evidence_count,
                confidence=rules.promote_to_L2.min_confidence,
                most=layers.L2.max_records,
                tags=with_types(layers.L2.allowed_tags),
                writers=policy.writers("L2"),
            ),
            project_most=layers.L3.max_records_per_project,
            contradictions=rules.deprecate.contradiction_evidence_required,
            semi_days=review.semi_stable_days,
            stable_days=review.stable_days,
        )

    def window(self, scope: Sequence[str]) -> int:
        """Return the days of recent records in a context package: of the project, if the scope has one."""
        return self.policy(scope[-1] if scope else PERSONAL).retrieval.time_window_days.L3_default

    def loads_playbook(self, pool: str) -> bool:
        """Whether a pool's whole playbook is always part of a context package."""
        return PLAYBOOK in self.policy(pool).retrieval.always_load

    def reading_agents(self, pool: str) -> bool:
        """Whether agents only read in a pool (G1)."""
        known = self._in_force.get(pool)
        return known is not None and known.policy.agent_only_reads

    @property
    def has_reading_agents(self) -> bool:
        """Whether agents only read in any pool."""
        return any(known.policy.agent_only_reads for known in self._in_force.values())

    def lens(self, cwd: str, scope: Sequence[str]) -> LocatedLens | None:
        """Return the lens of a folder whose pool is in scope and whose project the user trusts (P6). Reads a file."""
        pool = scope[-1] if scope else PERSONAL
        root = self._root_of(cwd) if cwd and self._stores.patches.policy(pool).trusted else ""
        if not root or self._pool_of(cwd) != pool:
            return None
        return located_lens(cwd, root, self._gate.text)

    @property
    def problems(self) -> tuple[str, ...]:
        """What the status says: the files that memd does not take, and what waits for the user."""
        refused = [
            f"{seen.stamp.path}: {seen.problem}; the policy before stays"
            for seen in tuple(self._seen.values())
            if seen.stamp and seen.problem
        ]
        waiting = [
            f"the policy of {self._directory.title(pool) or pool} loosens {_count(waits)}; `memd policy show`"
            for pool, known in tuple(self._in_force.items())
            if not known.entry.accepted and (waits := self._loosened(known.entry))
        ]
        return (*refused, *waiting)

    # --- following the files -------------------------------------------------------------------------------------
    def look(self) -> None:
        """Read the files that changed, and put what they decide in force. One thread at a time."""
        with self._looking:
            changed = self._enforce()
            for pool in self._trusted_pools():
                try:
                    changed = self._follow(pool) or changed
                except MemdError as error:  # a full disk: the next look tries again
                    log.warning("the policy of %s could not be stored: %s", pool, error.message)
                    self._seen.pop(pool, None)
            if changed:
                self._enforce()

    def _trusted_pools(self) -> tuple[str, ...]:
        return self._trusted.get("trusted", self._find_trusted)

    def _find_trusted(self) -> tuple[str, ...]:
        patches = self._stores.patches
        return tuple(opened.pool for opened in self._stores.sources.pools() if patches.policy(opened.pool).trusted)

    def _follow(self, pool: str) -> bool:
        """Journal the text of a pool's file if it changed; return whether it did."""
        places = self._folders.get(pool, lambda: folders(self._stores, pool))
        stamp, seen = policy_stamp(places), self._seen.get(pool)
        if seen is not None and seen.stamp == stamp:
            return False
        entry = self._stores.patches.policy(pool)
        try:
            data = content_of(stamp.path, _folder(stamp)) if stamp else b""
            text = self._taken(data) if stamp else ""
        except BadConfig as error:
            self._seen[pool] = Seen(stamp, f"{error.message} ({error.hint})")
            return False
        digest = _digest(data) if stamp else ""
        if digest != entry.digest:
            carried = entry.accepted and bool(text) and self._carries(entry, text)
            self._commit(PolicySet(pool=pool, digest=digest, text=text, accepted=carried))
            log.info("policy of %s: %s", pool, digest or "the default")
        self._seen[pool] = Seen(stamp)
        return digest != entry.digest

    def _taken(self, data: bytes) -> str:
        """Return the text of a file that memd can take. Raises BadConfig."""
        self._read(data)
        return data.decode("utf-8-sig")

    def _read(self, data: bytes) -> ReadPolicy:
        return read_policy(data, self.base, self._gate.text)

    def _carries(self, entry: PolicyEntry, text: str) -> bool:
        """Whether the user accepted already all that a new text loosens."""
        before = self._loosened(entry)
        return set(loosened(self._read(text.encode()).policy, self.base)) <= set(before)

    def _loosened(self, entry: PolicyEntry) -> tuple[Loosened, ...]:
        try:
            return loosened(self._read(entry.text.encode()).policy, self.base) if entry.text else ()
        except BadConfig:
            return ()

    def _commit(self, operation: PolicySet) -> None:
        self._writer().run(lambda: self._stores.commit([operation])).result()

    def _enforce(self, *, anew: bool = False) -> bool:
        """Put the journal's policies of trusted pools in force; return whether any changed. `anew`: the defaults
        changed."""
        before, after = self._in_force, dict[str, InForce]()
        for pool in self._trusted_pools():
            entry = self._stores.patches.policy(pool)
            if entry.text:
                known = before.get(pool)
                after[pool] = known if known and known.entry == entry and not anew else self._enforced(entry)
        for pool in self._seen.keys() - set(self._trusted_pools()):
            self._seen.pop(pool, None)
        if after == before:
            return False
        self._in_force = after
        self.changed.publish(None)
        return True

    def _enforced(self, entry: PolicyEntry) -> InForce:
        rules = self._config().forgetting
        try:
            read = self._read(entry.text.encode())
        except BadConfig as error:  # an earlier version took it
            return InForce(entry, self.base, rules, (), f"{error.message} ({error.hint})")
        policy = read.policy if entry.accepted else stricter(read.policy, self.base)
        return InForce(entry, policy, _rules(rules, policy, self.base), read.notes, "")

    # --- requests ------------------------------------------------------------------------------------------------
    def get(self, request: GetPolicy) -> PolicyState:
        """Return the policy of a pool. Raises NotFound."""
        self._look_now()
        return self._state(self._pool(request))

    def check(self, request: CheckPolicy) -> PolicyState:
        """Return what a file would be. Raises NotFound."""
        pool = self._pool(request)
        state = PolicyState(pool=pool, title=self._directory.title(pool), policy=self.base)
        try:
            read = self._read(request.data)
        except BadConfig as error:
            return msgspec.structs.replace(state, problem=f"{error.message} ({error.hint})")
        return msgspec.structs.replace(
            state,
            policy=stricter(read.policy, self.base),
            digest=_digest(request.data),
            loosened=loosened(read.policy, self.base),
            notes=read.notes,
        )

    def accept(self, request: AcceptPolicy) -> PolicyState:
        """Put what a pool's file loosens in force. Raises NotFound, InvalidRequest."""
        pool = self._pool(request)
        self._look_now()
        state = self._state(pool)
        if not state.digest:
            raise InvalidRequest("the pool has no policy file in force", hint="`memd policy show` tells why")
        if state.problem:
            raise InvalidRequest(f"memd does not take the file: {state.problem}", hint="correct it first")
        if request.digest != state.digest:
            raise InvalidRequest("the file is another one by now", hint="look at it again: `memd policy show`")
        entry = self._stores.patches.policy(pool)
        if not entry.accepted:
            self._commit(PolicySet(pool=pool, digest=entry.digest, text=entry.text, accepted=True))
            self._enforce()
        return self._state(pool)

    def _pool(self, request: GetPolicy | CheckPolicy | AcceptPolicy) -> str:
        return self._directory.named(request.pool) if request.pool else self._pool_of(request.cwd)

    def _look_now(self) -> None:
        """Look for changed files, and wait a little for the result."""
        looking = threading.Thread(target=self.look, name="policy", daemon=True)
        looking.start()
        looking.join(WAIT_S)

    def _state(self, pool: str) -> PolicyState:
        entry, known = self._stores.patches.policy(pool), self._in_force.get(pool)
        seen = self._seen.get(pool, Seen(None))
        default = PolicyState(
            pool=pool,
            title=self._directory.title(pool),
            policy=self.base,
            file=seen.stamp.path if seen.stamp else "",
            trusted=entry.trusted,
            problem=seen.problem,
        )
        if known is None:
            return default
        return msgspec.structs.replace(
            default,
            policy=known.policy,
            digest=entry.digest,
            accepted=entry.accepted,
            loosened=self._loosened(entry),
            problem=seen.problem or known.problem,
            notes=known.notes,
        )


def _base(config: Config) -> Policy:
    default, rules = Policy(), config.forgetting
    review = msgspec.structs.replace(
        default.review_policy,
        semi_stable_days=max(1, round(rules.review_days)),
        stable_days=max(1, round(rules.stable_review_days)),
    )
    retrieval = msgspec.structs.replace(default.retrieval, tag_boost=dict(config.tag_boost))
    return msgspec.structs.replace(default, review_policy=review, retrieval=retrieval)


def _rules(rules: Rules, policy: Policy, base: Policy) -> Rules:
    """Return the rules of forgetting with a policy's days. The first level fades by the floor within `L3_after_days`
    active days, and the others by the same factor more quickly or slowly; with the defaults nothing changes."""
    asked, usual = policy.review_policy, base.review_policy
    changed: dict[str, object] = {}
    if asked.decay != usual.decay:
        faster = usual.decay.L3_after_days / asked.decay.L3_after_days
        changed["daily_loss"] = tuple(1 - (1 - share) ** faster for share in rules.daily_loss)
    if asked.semi_stable_days != usual.semi_stable_days:
        changed["review_days"] = float(asked.semi_stable_days)
    if asked.stable_days != usual.stable_days:
        changed["stable_review_days"] = float(asked.stable_days)
    return msgspec.structs.replace(rules, **changed)


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def _folder(stamp: Stamp) -> str:
    return stamp.path.removesuffix(POLICY_FILE)


def _count(rules: Sequence[Loosened]) -> str:
    return f"{len(rules)} rule{'s' if len(rules) > 1 else ''}"
