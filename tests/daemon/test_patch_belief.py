"""What patches make believed follows from their set: any order, any split of pulls, any reverts on the way; and replay
gives what the live tables have (G2, G5)."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from memd.daemon.projections.folded import TableSet
from tests.daemon.patch_home import PatchHome, add, deprecate, file, patch, review, supersede

NAMES = ("001", "002", "003", "004", "005")
DAYS = ("2026-02-10", "2026-02-11", "2026-02-12")
names = st.sampled_from(NAMES)
operations = st.one_of(
    st.builds(add, names, st.sampled_from(["Tabs.", "Spaces.", "Neither."]), confidence=st.sampled_from([0.5, 0.8])),
    st.builds(add, names),
    st.builds(supersede, names, names),
    st.builds(deprecate, names, st.sampled_from(["", "it moved"])),
    st.builds(
        review,
        names,
        st.sampled_from(DAYS),
        st.sampled_from([None, 0.4, 0.9]),
        st.sampled_from(["", "2026-08-01", "2026-09-01"]),
    ),
)
patches = st.lists(
    st.builds(
        lambda ops, day: patch(*ops, day=day), st.lists(operations, min_size=1, max_size=4), st.sampled_from(DAYS)
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda fields: fields["patch_id"],
)


def all_at_once(folder: Path, some: Sequence[dict[str, Any]]) -> dict[str, Any]:
    home = PatchHome(folder)
    home.pull(*some)
    beliefs = home.beliefs()
    home.close()
    return beliefs


def wandering(folder: Path, some: Sequence[dict[str, Any]], random: Random) -> dict[str, Any]:
    """Take the patches in any order and split, with trees on the way that lack some, without trust at times."""
    home = PatchHome(folder)
    for _ in range(random.randrange(3)):
        home.pull(*random.sample(some, random.randint(0, len(some))))
        if random.random() < 0.3:
            home.trust(False)
            home.trust()
    order = random.sample(some, len(some))
    while order:
        size = random.randint(1, len(order))
        home.take(*map(file, order[:size]))
        order = order[size:]
    home.pull(*some)
    beliefs = home.beliefs()
    replayed(home)
    home.close()
    return beliefs


def replayed(home: PatchHome) -> None:
    """Check that tables folded anew have the rows of the live ones."""
    folder = home.places.data.parent / "anew"
    shutil.rmtree(folder, ignore_errors=True)
    anew = TableSet(folder)
    anew.tables.apply(list(home.stores.journal.read()))
    for name in ("records", "patches", "patch_names", "patches_of", "policies", "proposals", "held"):
        assert rows(anew.tables, name) == rows(home.stores.tables, name), name
    anew.close()


def rows(tables: Any, name: str) -> list[Any]:
    with tables.environment.read() as transaction:
        return list(transaction.cursor(tables.environment.db(name)).iternext())


@settings(max_examples=60, deadline=None)
@given(patches, st.integers(0, 1_000))
def test_any_order_split_and_revert_on_the_way_gives_the_same_beliefs_G2(
    some: list[dict[str, Any]], number: int
) -> None:
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # an index may still write its last file
        first = visible(all_at_once(Path(folder) / "one", some))
        assert visible(wandering(Path(folder) / "other", some, Random(number))) == first


def visible(beliefs: dict[str, Any]) -> dict[str, Any]:
    """The beliefs but for what is hidden: of that nothing shows whether it ever came."""
    return {name: state for name, state in beliefs.items() if state[0] != "hidden"}
