"""What is said in one breath, or handed over as a list, stays whole (T1, P-8)."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memd.models.pair import PairJudge
from memd.protocol.event import Noted, Said
from memd.stages.batch import Batch, Proposal
from memd.stages.reconcile import judge

Distil = Callable[..., Batch]
PAIRS = PairJudge()

# Forms of lists: each item gives another value, of what one has or does many of.
FORMS = {
    "We test on {}.": ["Firefox", "Safari", "Chrome", "Python 3.11", "Python 3.12"],
    "Always run the {} before a commit.": ["linter", "tests", "type checker", "formatter"],
    "Never push to {}.": ["main", "release", "staging"],
    "I always lock the {}.": ["door", "window", "car", "bike"],
    "The deploys of {} go out on Tuesdays.": ["python", "memd", "team", "orchard"],
    "Run test {}.": ["1", "2", "3", "12"],
    "Read chapter {}.": ["4", "5", "9"],
    "{} reviews the docs.": ["Alice", "Bob", "Chidi"],
    "{} is on call in May.": ["Alice", "Bob", "Chidi"],
    "The {} port is open.": ["staging", "production", "test"],
    "I like {}.": ["tea", "coffee", "rain"],
    "We log {} to Grafana.": ["errors", "metrics", "traces"],
    "Use {}.": ["ruff for linting", "mypy for types", "pytest for tests"],
    "The {} key opens the cellar.": ["red", "blue", "brass"],
}
# One attribute of one thing, which holds one value: the second one is a change, however soon it follows.
CHANGES = [
    ("I prefer tabs.", "I prefer spaces."),
    ("I live in Rome.", "I live in Oslo."),
    ("The rate limit is 100 per minute.", "The rate limit is 500 per minute."),
    ("The API listens on port 8080.", "The API listens on port 9090."),
    ("My favourite colour is green.", "My favourite colour is blue."),
    ("Our default branch is master.", "Our default branch is now main."),
    ("I use Vim.", "I switched from Vim to Emacs."),
    ("My dentist is Dr. Roth.", "My dentist is now Dr. Weiss."),
]


@st.composite
def lists(draw: st.DrawFn) -> list[str]:
    form = draw(st.sampled_from(sorted(FORMS)))
    return [form.format(value) for value in draw(st.permutations(FORMS[form]))]


def asked(distil: Distil, texts: Sequence[str], seconds: int, project: str = "") -> list[Proposal]:
    """Texts that somebody asks to remember, one after another."""
    at = [f"2026-03-10T09:{n * seconds // 60:02d}:{n * seconds % 60:02d}+01:00" for n in range(len(texts))]
    events = [Noted(turn=f"t{n}", at=at[n], text=text) for n, text in enumerate(texts)]
    return judge(distil(*events, project=project).candidates, {}, reader=PAIRS)


def stays(proposals: Sequence[Proposal]) -> bool:
    return all(p.decision.action == "add" and not p.retires and p.record.status == "active" for p in proposals)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(items=lists(), seconds=st.integers(0, 15), project=st.sampled_from(["", "project/x"]))
def test_items_of_a_list_that_are_remembered_within_a_minute_all_stay_P8(
    distil: Distil, items: list[str], seconds: int, project: str
) -> None:
    assert stays(asked(distil, items, seconds, project)), items


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(items=st.one_of(lists(), st.sampled_from(CHANGES)), bullet=st.sampled_from(["- ", ""]))
def test_statements_of_one_turn_never_retire_each_other_P8(distil: Distil, items: Sequence[str], bullet: str) -> None:
    text = "\n".join(f"{bullet}{item}" for item in items) if bullet else " ".join(items)
    said = Said(turn="t", at="2026-03-10T09:00:00+01:00", role="user", text=f"For later:\n{text}")
    proposals = judge(distil(said).candidates, {}, reader=PAIRS)
    assert not any(p.retires or p.record.status == "retired" for p in proposals), items
    keys = [p.record.key for p in proposals if p.record.key and p.decision.action == "add"]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize(("old", "new"), CHANGES)
def test_another_value_of_one_slot_is_a_change_within_a_minute_too_T1(distil: Distil, old: str, new: str) -> None:
    first, second = asked(distil, (old, new), 7)
    assert [retirement.id for retirement in second.retires] == [first.record.id]


def test_two_values_of_one_key_in_one_turn_keep_both_records_and_one_key_P8(distil: Distil) -> None:
    said = Said(turn="t", at="2026-03-10T09:00:00+01:00", role="user", text="I prefer tabs. I prefer spaces.")
    first, second = judge(distil(said).candidates, {})
    assert first.record.key and not second.record.key and second.record.kind == "note"
    assert second.record.status == "active" and not second.retires
