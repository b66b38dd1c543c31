"""Time and place leave a clause, nothing else does (T11)."""

import pytest

from memd.stages.episodes import Telling, general

FRIDAYS = ("2026-03-06T09:00:00Z", "2026-03-13T09:00:00Z", "2026-03-20T09:00:00Z")


def group(*clauses: str) -> list[Telling]:
    """The clauses, each said a week after the one before."""
    return [Telling(clause, at) for clause, at in zip(clauses, FRIDAYS, strict=True)]


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
        ("Deploys wait on Monday unless it is urgent.", ["Deploys wait.", "Deploys always wait."], ""),
        ("It broke in May.", ["It broke in June.", "It broke again."], ""),
    ],
)
def test_what_varies_at_the_ends_of_a_clause_is_dropped_T11(clause: str, others: list[str], left: str | None) -> None:
    assert general(clause, "en", group(clause, *others)) == (clause if left is None else left)


@pytest.mark.parametrize(
    ("clauses", "left"),
    [
        (("Yesterday the staging deploy ran out of disk.",) * 3, "The staging deploy ran out of disk."),
        (("The staging deploy ran out of disk on Friday.",) * 3, "The staging deploy ran out of disk."),
        (
            ("The backup failed last night because the disk was full.",) * 3,
            "The backup failed because the disk was full.",
        ),
        (("On Friday at 3 pm, the runner ran out of memory again.",) * 3, "The runner ran out of memory again."),
        (("The migration lost forty rows on 2026-03-01.",) * 3, ""),
        (("The weekly meeting with the vendor was yesterday.",) * 3, ""),
        (("Yesterday's deploy of the staging cluster failed.",) * 3, ""),
        (("The deploy must not start on Friday.",) * 3, ""),
        (("Die Sicherung ist gestern fehlgeschlagen.",) * 3, ""),
        (("The nightly backup fails on Fridays.",) * 3, "The nightly backup fails on Fridays."),
    ],
)
def test_a_time_that_all_tellings_name_is_dropped_or_the_clause_is_not_general_T11(
    clauses: tuple[str, ...], left: str
) -> None:
    told = [telling._replace(language="de" if "gestern" in telling.clause else "en") for telling in group(*clauses)]
    assert general(clauses[0], told[0].language, told) == left
