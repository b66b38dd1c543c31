"""Time and place leave a clause, nothing else does (T11)."""

import pytest

from memd.stages.episodes import general


@pytest.mark.parametrize(
    ("clause", "others", "left"),
    [
        (
            "On Monday, the staging deploy ran out of disk.",
            ["The staging deploy ran out of disk on Thursday.", "In June, the staging deploy ran out of disk."],
            "The staging deploy ran out of disk.",
        ),
        (
            "The nightly backup failed in Lyon last week.",
            ["The nightly backup failed in Oslo.", "The nightly backup failed in Porto yesterday."],
            "The nightly backup failed.",
        ),
        ("The parser is written in Rust.", ["Our parser is written in Rust.", "The parser: written in Rust."], None),
        ("The job must not run on Fridays.", ["The job must not run on Mondays.", "It must not run at noon."], None),
        ("Deploys wait on Monday unless it is urgent.", ["Deploys wait.", "Deploys always wait."], None),
        ("It broke in May.", ["It broke in June.", "It broke again."], None),
    ],
)
def test_what_varies_at_the_ends_of_a_clause_is_dropped_T11(clause: str, others: list[str], left: str | None) -> None:
    assert general(clause, others) == (left or clause)
