"""The policy of a pool: what its file may contain, what it loosens, and what the daemon does with it (G8, Q11)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from memd.daemon.config import Config
from memd.daemon.forgetting_rules import Rules
from memd.daemon.projections.aliases import of_checkout
from memd.daemon.services.core import core_of
from memd.daemon.services.lifecycle.review import cadence_days
from memd.daemon.services.policy.loosening import RULES, loosened, stricter
from memd.daemon.services.policy.policy_file import DEEPEST, read_policy
from memd.daemon.services.policy.policy_service import PolicyService
from memd.protocol.errors import BadConfig, InvalidRequest
from memd.protocol.operation import AliasAdded, PiTrusted, PolicySet, PoolOpened
from memd.protocol.places import places
from memd.protocol.policy import (
    POLICY_BYTES,
    POLICY_FILE,
    AcceptPolicy,
    CheckPolicy,
    GetPolicy,
    Policy,
)
from tests.daemon.living import Running, record

SEED = """\
version: 1
layers:
  L1:
    max_records: 40
    allowed_tags: ["preferences", "identity", "constraints"]
    write_policy: "manual_or_curator_only"
  L2:
    max_records: 300
    allowed_tags: ["workflow", "playbook", "domain", "architecture"]
    write_policy: "curator_or_maintainer_only"
  L3:
    max_records_per_project: 2000
    write_policy: "auto_ok"

confidence_rules:
  promote_to_L2:
    requires_evidence_count: 2
    min_confidence: 0.75
  promote_to_L1:
    requires_evidence_count: 3
    min_confidence: 0.85
  deprecate:
    contradiction_evidence_required: 1

review_policy:
  semi_stable_days: 30
  stable_days: 120
  decay:
    L3_after_days: 45

retrieval:
  always_load:
    - ".pi/memory/L1.identity.jsonl"
  tag_boost:
    workflow: 2.0
    architecture: 1.5
  time_window_days:
    L3_default: 14
"""
"""The example of the text that memd's layers come from, unchanged."""

POOL = "project/orchard"
SECRET = "ghp_" + "a1B2" * 9


def read(text: str | bytes, base: Policy | None = None) -> Policy:
    data = text.encode() if isinstance(text, str) else text
    return read_policy(data, base or Policy(), lambda words: words.replace(SECRET, "[redacted]")).policy


def notes(text: str) -> str:
    return " ".join(read_policy(text.encode(), Policy(), str).notes)


# --- the file --------------------------------------------------------------------------------------------------------
def test_the_seeds_example_is_memds_default_and_loosens_nothing() -> None:
    policy = read(SEED)
    rules, layers = policy.confidence_rules, policy.layers
    assert (rules.promote_to_L1.requires_evidence_count, rules.promote_to_L1.min_confidence) == (3, 0.85)
    assert (rules.promote_to_L2.requires_evidence_count, rules.promote_to_L2.min_confidence) == (2, 0.75)
    assert (layers.L1.max_records, layers.L2.max_records) == (40, 300)
    assert layers.L3.max_records_per_project == 2_000 and rules == Policy().confidence_rules
    assert policy.review_policy == Policy().review_policy
    assert policy.retrieval.tag_boost == {"workflow": 2.0, "architecture": 1.5}
    assert loosened(policy, Policy()) == () and notes(SEED) == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "version 'none'"),
        ("version: 2\n", "version 2"),
        ("version: true\n", "version True"),
        ("version: 1\nversion: 1\n", "line 2"),
        ("version: 1\nlayers: &a {}\n", "anchor"),
        ("version: 1\nlayers: *a\n", "alias"),
        ("version: 1\nlayers: !!map {}\n", "tag"),
        ("version: !!int 1\n", "tag"),
        ("%YAML 1.1\n---\nversion: 1\n", "% directive"),
        ("%TAG ! tag:x,2000:\n---\nversion: 1\n", "% directive"),
        ("version: 1\n---\nversion: 1\n", "line 2"),
        ("- version\n", "not a mapping"),
        ("1: 1\n", "not a mapping"),
        ("version: 1\n\tlayers: 1\n", "line 2"),
        ("version: 1\nlayers: " + "[" * 30_000, "nested"),
        ("version: 1\nlayers: " + "{a: " * 9 + "1" + "}" * 9, "nested"),
        ("version: 1\n" + "- " * 9, "line 2"),
        (f"version: 1\n# {'x' * POLICY_BYTES}", "bytes"),
        ("version: 1\nlayers: {L2: {max_records: many}}", "layers.L2.max_records"),
        ("version: 1\nlayers: {L2: {max_records: 1.5}}", "layers.L2.max_records"),
        ("version: 1\nlayers: {L2: {max_records: -1}}", "layers.L2.max_records"),
        ("version: 1\nlayers: {L2: {max_records: '300'}}", "layers.L2.max_records"),
        ("version: 1\nlayers: {L3: {write_policy: whatever}}", "layers.L3.write_policy"),
        ("version: 1\nlayers: [1]", "layers"),
        ("version: 1\nlayers:\n", "layers"),
        ("version: 1\nconfidence_rules: {promote_to_L2: {min_confidence: 1.01}}", "min_confidence"),
        ("version: 1\nconfidence_rules: {promote_to_L2: {min_confidence: .nan}}", "min_confidence"),
        ("version: 1\nconfidence_rules: {promote_to_L2: {requires_evidence_count: 0}}", "requires_evidence_count"),
        ("version: 1\nconfidence_rules: {deprecate: {contradiction_evidence_required: 0}}", "contradiction"),
        ("version: 1\nretrieval: {tag_boost: {workflow: .inf}}", "tag_boost"),
        ("version: 1\nretrieval: {tag_boost: {workflow: 11}}", "tag_boost"),
        ("version: 1\nretrieval: {tag_boost: {2026-01-01: 1.0}}", "tag_boost"),
        ("version: 1\nreview_policy: {stable_days: 2026-01-01}", "stable_days"),
        (f"version: 1\n# {SECRET}\n", "secret"),
        (b"version: 1\n# \xff\n", "UTF-8"),
        (b"version: 1\n# \x00\n", "does not parse"),
    ],
)
def test_a_file_that_memd_cannot_take_is_refused_as_a_whole_with_the_reason(text: str | bytes, why: str) -> None:
    with pytest.raises(BadConfig) as refused:
        read(text)
    assert why in refused.value.message, refused.value.message
    assert SECRET not in refused.value.message + refused.value.hint


def test_values_are_those_of_YAML_1_2() -> None:
    policy = read("version: 1\nlayers: {L2: {allowed_tags: [no, on, yes, '012']}}\n")
    assert policy.layers.L2.allowed_tags == ("no", "on", "yes", "012"), "no word becomes true or false"
    assert read("﻿version: 1\n") == Policy() == read("version: 1\r\n"), "a mark of byte order, line ends of Windows"
    assert DEEPEST > 4, "a policy has four levels"


def test_an_unknown_key_is_named_with_the_nearest_known_one_and_kept() -> None:
    assert "did you mean layers.L2.max_records?" in notes("version: 1\nlayers: {L2: {max_record: 10}}")
    assert "did you mean retrieval?" in notes("version: 1\nretreival: {}\n")
    assert "there are: layers" in notes("version: 1\nteam: x\n")
    assert read("version: 1\nlayers: {L2: {max_record: 10, max_records: 20}}").layers.L2.max_records == 20
    assert "memd loads only" in notes("version: 1\nretrieval: {always_load: [README.md]}")


def test_what_a_file_leaves_out_is_as_in_memd_toml() -> None:
    base = msgspec.structs.replace(
        Policy(), retrieval=msgspec.structs.replace(Policy().retrieval, tag_boost={"a": 3.0})
    )
    assert read("version: 1\nreview_policy: {stable_days: 60}", base).retrieval.tag_boost == {"a": 3.0}
    assert read("version: 1\nretrieval: {tag_boost: {b: 1.5}}", base).retrieval.tag_boost == {"b": 1.5}


# --- what loosens ----------------------------------------------------------------------------------------------------
STRICTER = """\
version: 1
layers:
  L1: {max_records: 10, allowed_tags: [identity], write_policy: manual_only}
  L2: {max_records: 100, allowed_tags: [workflow], write_policy: curator_only}
  L3: {max_records_per_project: 500, write_policy: capturer_only}
confidence_rules:
  promote_to_L2: {requires_evidence_count: 3, min_confidence: 0.8}
  promote_to_L1: {requires_evidence_count: 4, min_confidence: 0.9}
review_policy: {semi_stable_days: 20, stable_days: 60, decay: {L3_after_days: 20}}
"""

LOOSER = """\
version: 1
layers:
  L1: {max_records: 41}
  L2: {max_records: 301}
  L3: {max_records_per_project: 2001}
confidence_rules:
  promote_to_L2: {requires_evidence_count: 1, min_confidence: 0.7}
  promote_to_L1: {requires_evidence_count: 2, min_confidence: 0.8}
  deprecate: {contradiction_evidence_required: 2}
review_policy: {semi_stable_days: 31, stable_days: 121, decay: {L3_after_days: 46}}
"""


def test_every_rule_outside_of_retrieval_has_a_direction() -> None:
    def paths(values: dict[str, object], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
        for name, value in values.items():
            yield from paths(value, (*above, name)) if isinstance(value, dict) else [(*above, name)]

    every = set(paths(msgspec.to_builtins(Policy())))
    assert {rule.path for rule in RULES} == {path for path in every if path[0] != "retrieval"}


def test_a_stricter_file_holds_at_once_and_a_looser_one_changes_nothing() -> None:
    strict, loose = read(STRICTER), read(LOOSER)
    assert loosened(strict, Policy()) == () and stricter(strict, Policy()) == strict != Policy()
    assert {rule.rule for rule in loosened(loose, Policy())} == {
        ".".join(rule.path) for rule in RULES if rule.path[-1] not in ("allowed_tags", "write_policy")
    }
    assert stricter(loose, Policy()) == Policy()
    back = {rule.rule for rule in loosened(Policy(), strict)}
    assert {
        "layers.L1.write_policy",
        "layers.L2.write_policy",
        "layers.L3.write_policy",
        "layers.L2.allowed_tags",
    } < back


def test_each_rule_is_judged_alone() -> None:
    mixed = read("version: 1\nlayers: {L2: {max_records: 500}}\nreview_policy: {stable_days: 60}\n")
    (rule,) = loosened(mixed, Policy())
    assert (rule.rule, rule.default, rule.asked) == ("layers.L2.max_records", "300", "500")
    held = stricter(mixed, Policy())
    assert held.layers.L2.max_records == 300 and held.review_policy.stable_days == 60


def test_a_records_type_counts_as_the_tag_of_a_policy() -> None:
    policy = read(SEED)
    assert policy.allows("L2", ("convention", "tabs")) and policy.allows("L2", ("note", "Workflow"))
    assert not policy.allows("L2", ("preference", "tea")) and policy.allows("L1", ("preference", "tea"))
    assert Policy().allows("L2", ()) and policy.allows("L3", ()), "without a list any tag"


def test_who_may_propose_follows_from_the_write_policy() -> None:
    usual, strict, manual = Policy(), read(STRICTER), read("version: 1\nlayers: {L2: {write_policy: manual_only}}")
    both = ("curator", "maintainer")
    assert (usual.writers("L1"), usual.writers("L2")) == (("curator",), both)
    assert (strict.writers("L1"), strict.writers("L2")) == ((), ("curator",))
    assert manual.writers("L2") == ()


FIRST_AT_ONCE = """
import sys, threading
from memd.daemon.services.policy.policy_file import converted
from memd.protocol.policy import Policy
sys.setswitchinterval(1e-5)
gate = threading.Barrier(4)
def read():
    gate.wait()
    converted({"layers": {"L2": {"max_records": 5}}}, Policy)
threads = [threading.Thread(target=read) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


def test_threads_that_read_a_policy_first_at_the_same_time_do_not_end_the_process() -> None:
    for _ in range(4):
        assert subprocess.run([sys.executable, "-c", FIRST_AT_ONCE], check=False).returncode == 0


# --- the daemon ------------------------------------------------------------------------------------------------------
class PolicyHome(Running):
    """Stores with the policy service, and a checkout."""

    def __init__(self, folder: Path) -> None:
        (folder / "home").mkdir(parents=True, mode=0o700)
        super().__init__(folder / "home" / "data")
        self.root = folder / "orchard"
        (self.root / ".git").mkdir(parents=True)
        self.config = Config()
        places_ = places({"MEMD_HOME": str(folder / "home"), "HOME": str(folder)}, 1000)
        self.core = core_of(self.stores, places_, lambda: self.config, self.world)
        self.stores.commit([
            PoolOpened(pool=POOL, title="orchard"),
            AliasAdded(pool=POOL, names=(of_checkout(str(self.root / ".git")),)),
        ])  # fmt: skip
        self.service = self.served()

    def served(self) -> PolicyService:
        return PolicyService(
            self.core, lambda: self.writer, pool_of=lambda cwd: POOL, root_of=lambda cwd: str(self.root)
        )

    @property
    def file(self) -> Path:
        return self.root / POLICY_FILE

    def trust(self, trusted: bool = True) -> None:
        self.stores.commit([PiTrusted(pool=POOL, trusted=trusted)])

    def write(self, text: str) -> None:
        self.file.parent.mkdir(exist_ok=True)
        fresh = self.file.with_suffix(".new")
        fresh.write_text(text)
        fresh.replace(self.file)
        self.service.look()

    @property
    def playbook_records(self) -> int:
        return self.service.policy(POOL).layers.L2.max_records

    @property
    def set(self) -> list[PolicySet]:
        entries = self.stores.journal.read(0)
        return [entry.operation for entry in entries if isinstance(entry.operation, PolicySet)]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[PolicyHome]:
    built = PolicyHome(tmp_path)
    yield built
    built.close()


def limit(records: int) -> str:
    return f"version: 1\nlayers: {{L2: {{max_records: {records}}}}}\n"


def test_a_file_of_a_project_that_the_user_does_not_trust_is_not_read_G8(home: PolicyHome) -> None:
    home.write(limit(10))
    assert home.playbook_records == 300 and not home.set
    assert not home.service.get(GetPolicy(pool=POOL)).trusted
    home.trust()
    home.service.look()
    assert home.playbook_records == 10 and len(home.set) == 1
    home.trust(False)
    home.service.look()
    assert home.playbook_records == 300, "trust withdrawn"


def test_a_changed_text_is_journaled_once_and_a_removed_file_is_the_default(home: PolicyHome) -> None:
    home.trust()
    home.write(limit(10))
    for _ in range(3):
        home.service.look()
    os.utime(home.file)
    home.service.look()
    assert [change.text for change in home.set] == [limit(10)]
    home.file.unlink()
    home.service.look()
    assert home.playbook_records == 300 and [change.text for change in home.set] == [limit(10), ""]


def test_after_a_start_the_journal_decides_until_a_file_says_otherwise(home: PolicyHome) -> None:
    home.trust()
    home.write(limit(10))
    home.file.unlink()
    again = home.served()
    again._enforce()
    assert again.policy(POOL).layers.L2.max_records == 10, "as journaled, without a file"
    again.look()
    assert again.policy(POOL).layers.L2.max_records == 300


def test_a_bad_file_changes_nothing_and_the_status_says_why(home: PolicyHome) -> None:
    home.trust()
    home.write(limit(10))
    home.write("version: 1\nlayers: {L2: {max_records: none}}\n")
    assert home.playbook_records == 10 and len(home.set) == 1
    (problem,) = home.service.problems
    assert "layers.L2.max_records" in problem and "the policy before stays" in problem
    assert "layers.L2.max_records" in home.service.get(GetPolicy(pool=POOL)).problem
    home.write(limit(20))
    assert home.playbook_records == 20 and home.service.problems == ()


def test_what_a_file_loosens_waits_for_the_user(home: PolicyHome) -> None:
    home.trust()
    home.write(limit(500))
    state = home.service.get(GetPolicy(pool=POOL))
    assert home.playbook_records == 300 and [rule.rule for rule in state.loosened] == ["layers.L2.max_records"]
    assert "loosens 1 rule" in home.service.problems[0]
    with pytest.raises(InvalidRequest, match="another one"):
        home.service.accept(AcceptPolicy(pool=POOL, digest="0" * 32))
    after = home.service.accept(AcceptPolicy(pool=POOL, digest=state.digest))
    assert home.playbook_records == 500 and after.accepted and home.service.problems == ()
    assert len(home.set) == 2
    home.service.accept(AcceptPolicy(pool=POOL, digest=state.digest))
    assert len(home.set) == 2, "a second time changes nothing"


def test_an_acceptance_covers_no_other_loosening(home: PolicyHome) -> None:
    home.trust()
    home.write(limit(500))
    digest = home.service.get(GetPolicy(pool=POOL)).digest
    home.service.accept(AcceptPolicy(pool=POOL, digest=digest))
    home.write(f"{limit(500)}review_policy: {{stable_days: 60}}\n")
    assert home.playbook_records == 500, "the same loosening, and a stricter rule"
    home.write(limit(501))
    assert home.playbook_records == 300
    home.write(limit(500))
    assert home.playbook_records == 300, "the acceptance ended with the other text"


def test_a_check_changes_nothing(home: PolicyHome) -> None:
    state = home.service.check(CheckPolicy(data=limit(500).encode(), pool=POOL))
    assert [rule.asked for rule in state.loosened] == ["500"] and state.policy.layers.L2.max_records == 300
    assert "version" in home.service.check(CheckPolicy(data=b"a: 1", pool=POOL)).problem
    assert not home.set


@pytest.mark.parametrize("kind", ["link", "folder", "pipe", "linked folder", "large"])
def test_only_a_file_of_the_repository_is_read(home: PolicyHome, tmp_path: Path, kind: str) -> None:
    home.trust()
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "pi.config.yaml").write_text(limit(10))
    if kind == "linked folder":
        (home.root / ".pi").symlink_to(other)
    else:
        (home.root / ".pi").mkdir()
    if kind == "link":
        home.file.symlink_to(other / "pi.config.yaml")
    elif kind == "folder":
        home.file.mkdir()
    elif kind == "pipe":
        os.mkfifo(home.file)
    elif kind == "large":
        home.file.write_text(f"{limit(10)}# {'x' * POLICY_BYTES}")
    home.service.look()
    assert home.playbook_records == 300 and len(home.service.problems) == 1 and not home.set


def test_review_and_decay_follow_the_policy_of_their_pool_alone(home: PolicyHome) -> None:
    home.trust()
    home.write("version: 1\nreview_policy: {semi_stable_days: 10, stable_days: 20, decay: {L3_after_days: 15}}\n")
    rules, usual = home.service.rules(POOL), home.service.rules("personal")
    assert usual == Rules() and rules.review_days == 10.0
    assert cadence_days(record(1, pool=POOL), rules) == 10.0
    days = 45
    assert rules.retention(days / 3)[0] == pytest.approx(usual.retention(days)[0]), "as weak after 15 days as after 45"
    assert usual.retention(days)[0] == pytest.approx(usual.floor, rel=0.01), "the default of both is the same"


def test_memd_toml_is_the_default_that_a_file_may_not_loosen(home: PolicyHome) -> None:
    home.config = Config(forgetting=Rules(stable_review_days=50.0))
    home.trust()
    home.write("version: 1\nreview_policy: {stable_days: 100}\n")
    assert home.service.policy(POOL).review_policy.stable_days == 50
    home.config = Config()
    home.service.reload(home.config)
    assert home.service.policy(POOL).review_policy.stable_days == 100


def test_a_look_at_files_that_did_not_change_reads_none(home: PolicyHome) -> None:
    home.trust()
    home.write(limit(10))
    seen = home.file.stat()
    home.file.write_text(limit(11))
    os.utime(home.file, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    home.service.look()
    assert home.playbook_records == 10, "the same time, size and number: not read again"
    time.sleep(0.01)
    os.utime(home.file)
    home.service.look()
    assert home.playbook_records == 11
