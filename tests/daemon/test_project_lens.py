"""The lens of a part of a repository (P6), and context packages by policy (Q11)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from memd.daemon.services.policy.policy_file import converted, unknown_keys, yaml_values
from memd.daemon.services.profile.context_package import ContextPackager
from memd.daemon.services.profile.profile_lines import ProfileLines
from memd.protocol.event import Origin
from memd.protocol.instant import from_micros
from memd.protocol.operation import SessionOpened
from memd.protocol.policy import LENS_FILE, ProjectLens
from memd.protocol.profile import ContextPackage, GetContext
from memd.protocol.record import Artifact
from tests.daemon.living import added
from tests.daemon.test_policy import POOL, PolicyHome

SEED_LENS = """\
project_slug: alpha-service
domains: ["backend", "api-design", "security"]
memory_scope:
  L2_tags: ["architecture", "workflow", "security"]
  L3_paths:
    - "docs/decisions/"
    - "src/alpha-service/"
"""
"""The example of the text that memd's layers come from, unchanged."""

SCOPE = ("personal", POOL)
DAY = 86_400_000_000


class Monorepo(PolicyHome):
    """A repository with three parts; each has a lens."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        lenses = {"alpha": "L2_tags: [architecture]", "beta": "L2_tags: [workflow]", "gamma": "L2_tags: []"}
        for name, scope in lenses.items():
            self.lens(name, f"project_slug: {name}\nmemory_scope: {{{scope}}}\n")
            (self.root / "projects" / name / "src").mkdir()
        self.trust()
        self.now = 1_767_400_000_000_000
        self.numbers = 0

    def lens(self, name: str, text: str) -> None:
        folder = self.root / "projects" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / LENS_FILE).write_text(text)

    def know(self, description: str, *, source: str = "h:s", days_ago: int = 1, **more: Any) -> None:
        """Add a record that the user stated some days ago."""
        self.numbers += 1
        at = self.now - days_ago * DAY
        operation = added(self.numbers, pool=POOL, learned_at=at, description=description, **more)
        provenance = replace(operation.record.provenance, said_at=from_micros(at), source=source)
        self.stores.commit([replace(operation, record=replace(operation.record, provenance=provenance))])

    def context(self, part: str = "", **more: Any) -> ContextPackage:
        cwd = str(self.root / "projects" / part / "src") if part else str(self.root)
        lines = ProfileLines(self.stores.profile, self.stores.archive, len)
        packager = ContextPackager(
            self.stores.records,
            self.stores.inbox.held,
            lines,
            lambda record: max((self.service.boosts(record.pool).get(tag, 1.0) for tag in record.tags), default=1.0),
            lambda: self.now,
            self.service,
            self._cwd_of,
        )
        return packager.package(GetContext(cwd=cwd, **more), SCOPE, None)

    def _cwd_of(self, document: str) -> str:
        session = self.stores.sources.session(document)
        return session.opened.origin.cwd if session else ""

    def playbook(self, part: str = "", **more: Any) -> set[str]:
        selected = self.context(part, **more).selected
        return {row.record.description.split()[0] for row in selected if row.record.layer == "L2"}

    def recent(self, part: str = "", **more: Any) -> list[str]:
        selected = self.context(part, **more).selected
        return [row.record.description.split()[0] for row in selected if row.record.layer == "L3"]


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Monorepo]:
    built = Monorepo(tmp_path)
    yield built
    built.close()


def test_the_seeds_example_is_read_unchanged_P6() -> None:
    values = yaml_values(SEED_LENS.encode(), str)
    lens = converted(values, ProjectLens)
    assert lens.project_slug == "alpha-service" and lens.domains == ("backend", "api-design", "security")
    assert lens.memory_scope.L2_tags == ("architecture", "workflow", "security")
    assert lens.memory_scope.L3_paths == ("docs/decisions/", "src/alpha-service/")
    assert not list(unknown_keys(values, ProjectLens))


def test_each_part_gets_the_playbook_that_it_needs_from_one_pool_P6(repo: Monorepo) -> None:
    repo.know("layers of the services stay apart", layer="L2", tags=("fact", "architecture"))
    repo.know("review before every merge", layer="L2", tags=("fact", "workflow"))
    repo.know("deploys happen on Tuesdays", layer="L2", tags=("convention", "deploys"))
    repo.know("honesty in every commit", layer="L2", tags=("preference", "principle"), pinned=True)
    assert repo.playbook("alpha") == {"layers", "honesty"}, "a principle is always part of it"
    assert repo.playbook("beta") == {"review", "deploys", "honesty"}, "a convention is workflow"
    assert repo.playbook("gamma") == repo.playbook() == {"layers", "review", "deploys", "honesty"}
    assert repo.playbook("alpha", tags=("deploys",)) == {"deploys"}, "the request's tags come first"
    assert repo.playbook("alpha", pools=SCOPE) == repo.playbook(), "pools that are named have no lens"


def test_a_domain_of_the_lens_adds_its_records_P6(repo: Monorepo) -> None:
    repo.lens("alpha", "domains: [security]\nmemory_scope: {L2_tags: [architecture]}\n")
    repo.know("keys are rotated monthly", layer="L2", tags=("fact", "domain:security"))
    repo.know("buttons are blue", layer="L2", tags=("fact", "domain:design"))
    assert repo.playbook("alpha") == {"keys"}


def test_recent_records_of_a_part_come_first_and_none_is_hidden_P6(repo: Monorepo) -> None:
    repo.lens("alpha", "project_slug: alpha\nmemory_scope: {L3_paths: [docs/decisions/, notes]}\n")
    alpha = str(repo.root / "projects" / "alpha")
    opened = Origin(host="h", session="alpha", cwd=f"{alpha}/src")
    repo.stores.commit([SessionOpened(document="h:alpha", origin=opened, project=POOL, at="2026-01-01T00:00:00Z")])
    loud: dict[str, Any] = {"confidence": 1.0}
    repo.know("elsewhere", **loud)
    repo.know("besides", source=f"markdown:{repo.root}/docs/decisionsX.md", **loud)
    repo.know("session", source="h:alpha")
    repo.know("decided", source=f"markdown:{repo.root}/docs/decisions/0001.md")
    repo.know("noted", artifacts=(Artifact(type="file", ref=f"{alpha}/notes/a.md#Heading"),))
    first, rest = repo.recent("alpha")[:3], repo.recent("alpha")[3:]
    assert set(first) == {"session", "decided", "noted"} and set(rest) == {"elsewhere", "besides"}
    assert set(repo.recent()[:2]) == {"elsewhere", "besides"}, "without the lens by salience alone"
    package = repo.context("alpha")
    assert package.project == "alpha" and "# Context of alpha" in package.context
    assert "from alpha" in next(row.why for row in package.selected if row.record.description == "session")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("project_slug: a b\n", "project_slug"),
        ("memory_scope: {L3_paths: [../other]}\n", "outside"),
        ("memory_scope: {L3_paths: [/etc]}\n", "outside"),
        ("memory_scope: {L2_tags: workflow}\n", "L2_tags"),
        ("memory_scope: *a\n", "alias"),
        ("- a\n", "not a mapping"),
    ],
)
def test_a_lens_that_memd_cannot_take_is_named_and_hides_nothing_P6(repo: Monorepo, text: str, why: str) -> None:
    repo.know("layers of the services stay apart", layer="L2", tags=("fact", "architecture"))
    repo.lens("beta", text)
    package = repo.context("beta")
    assert why in package.note and LENS_FILE in package.note and repo.playbook("beta") == {"layers"}


def test_the_nearest_lens_within_the_repository_counts_P6(repo: Monorepo) -> None:
    (repo.root.parent / LENS_FILE).write_text("project_slug: outside\n")
    assert repo.context().project == ""
    (repo.root / LENS_FILE).write_text("project_slug: whole\n")
    assert repo.context().project == "whole" and repo.context("alpha").project == "alpha"
    (repo.root / "projects" / "alpha" / LENS_FILE).unlink()
    assert repo.context("alpha").project == "whole"
    repo.trust(False)
    assert repo.context("beta").project == "", "a project that the user does not trust"


def test_a_policys_window_and_boosts_order_the_package_Q11(repo: Monorepo) -> None:
    repo.know("dull", tags=("fact", "x"))
    repo.know("bright", tags=("fact", "shiny"))
    repo.know("old", days_ago=10)
    assert set(repo.recent()) == {"dull", "bright", "old"}
    repo.write("version: 1\nretrieval: {tag_boost: {shiny: 3.0}, time_window_days: {L3_default: 7}}\n")
    assert repo.recent() == ["bright", "dull"]
    assert set(repo.recent(days=14)) == {"dull", "bright", "old"}, "the request's days come first"
    assert "of the last 7 days" in repo.context().selected[0].why
    repo.write("version: 1\nretrieval: {tag_boost: {x: 3.0}}\n")
    assert repo.recent()[0] == "dull"


def test_a_playbook_that_is_always_loaded_ignores_tags_Q11(repo: Monorepo) -> None:
    repo.know("review before every merge", layer="L2", tags=("fact", "workflow"))
    assert repo.playbook(tags=("other",)) == set()
    repo.write("version: 1\nretrieval: {always_load: [.pi/memory/L2.playbooks.jsonl]}\n")
    assert repo.playbook(tags=("other",)) == repo.playbook("alpha") == {"review"}
