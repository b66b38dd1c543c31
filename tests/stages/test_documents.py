"""Parts of Markdown files: purpose, procedures, rows and prose, each whole and as what it is (P-5)."""

from collections.abc import Callable

import pytest

from memd.protocol.event import Form, Wrote
from memd.stages.batch import Batch, Candidate
from memd.stages.documents import context, procedure, statements
from memd.stages.reconcile import judge

AT = "2026-03-10T09:00:00+01:00"
Distil = Callable[..., Batch]
README = "/src/orchard/README.md#Orchard > "


def wrote(text: str, form: Form = "", section: str = "Use", turn: str = "t") -> Wrote:
    return Wrote(turn=turn, at=AT, text=f"# {section}\n{text}", path=README + section, form=form)


def candidates(distil: Distil, *events: Wrote) -> list[Candidate]:
    return list(distil(*events, project="project/x").candidates)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("```\npytest -q\n```", "Tests: `pytest -q`"),
        ("To record them again:\n```\nA=1 pytest\n```", "To record them again: `A=1 pytest`"),
        ("```\nmake a\n\n# Or all of them\nmake all\n```", "Tests: `make a`; Or all of them: `make all`"),
        ("```\nnpm ci      # once\nnpm test\n```", "Tests: `npm ci` (once); `npm test`"),
        ("```\ncargo run \\\n  --release\n```", "Tests: `cargo run --release`"),
        ("Command: `make a b`; Meaning: all", ""),
    ],
)
def test_commands_are_told_in_one_line_behind_what_announces_them(words: str, line: str) -> None:
    assert procedure(words, "Tests") == line


def test_a_heading_is_the_context_without_its_ornaments() -> None:
    (clause,) = statements(wrote("We squash all pull requests here.", section="🚀 **Pull requests**"))
    assert context(clause) == "Pull requests"


def test_a_part_is_one_statement_and_its_quote_is_in_it_P5(distil: Distil) -> None:
    words = "The folder `var/outbox` holds web hooks. If you delete it, shops miss these events for good."
    (one,) = candidates(distil, wrote(words, section="Operations"))
    assert one.quote == words
    assert one.description == f"{words.rstrip('.')} (Operations)"


def test_structure_decides_the_type(distil: Distil) -> None:
    told = candidates(
        distil,
        wrote("Orchard counts apples on conveyor belts.", "purpose", turn="a"),
        wrote("```\nuv run pytest -q\n```", "commands", "Running the tests", turn="b"),
        wrote("Variable: `POLL_SECONDS`; Default: `90`; Meaning: how often a belt is asked", "row", turn="c"),
    )
    assert [one.type for one in told] == ["purpose", "procedure", "fact"]
    assert [one.description for one in told[:2]] == [
        "Purpose of the project Orchard: Orchard counts apples on conveyor belts.",
        "Running the tests: `uv run pytest -q`",
    ]


def test_what_a_new_colleague_does_first_has_more_importance(distil: Distil) -> None:
    first, other = candidates(
        distil,
        wrote("```\npytest\n```", "commands", "Running the tests", turn="a"),
        wrote("```\nmake feed\n```", "commands", "Rotating the signing keys of a customer", turn="b"),
    )
    assert first.importance > other.importance


def test_a_document_that_is_looked_up_teaches_less(distil: Distil) -> None:
    words = "The belts write to one folder of the machine."
    assert candidates(distil, wrote(words))
    assert not candidates(distil, Wrote(turn="t", at=AT, text=words, path="/src/orchard/docs/api.md#API"))


def test_rows_of_one_table_hold_together_however_alike_they_are(distil: Distil) -> None:
    rows = [
        wrote(
            f"Variable: `{name}_RETRIES`; Default: `{n}`; Meaning: attempts of a hook before it waits", "row", turn=name
        )
        for n, name in enumerate(("BELT", "HOOK", "MAIL"))
    ]
    assert [proposal.decision.action for proposal in judge(candidates(distil, *rows), {})] == ["add"] * 3


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ("parser: read tabs as eight columns", 0),
        ("We read tabs as eight columns because the old files were written on terminals.", 1),
        ("Switch to uv\n\nWe chose uv over pip because it resolves in parallel.", 1),
        ("recall: speed\n\nThe table has two columns more.", 0),
    ],
)
def test_a_commit_teaches_a_rule_a_decision_or_a_reason(distil: Distil, message: str, kept: int) -> None:
    assert len(candidates(distil, Wrote(turn="t", at=AT, text=message, author="ada", own=True))) == kept
