"""What headings say of the clauses below them: plan, trouble, result, subject (W3, P-5)."""

import pytest

from memd.protocol.event import Wrote
from memd.stages.clauses import Clause, split
from memd.stages.sections import asked, context, headed, instructs, results, section, sums_up, troubled, under

AT = "2026-03-10T09:00:00+01:00"


def last(text: str) -> Clause:
    return split(text).clauses[-1]


def test_a_clause_knows_all_headings_and_items_above_it() -> None:
    found = last("# Door\n\n## Done\n\n1. **Tokens** — one store:\n   - `Store` keeps the tokens in memory.\n")
    assert found.path == ("Door", "Done", "Tokens** — one store:")
    assert found.heading == "Tokens** — one store:"


def test_a_paragraph_ends_a_list_and_the_bold_line_above_it() -> None:
    text = "# Door\n\n**Setters:**\n\n- `set()` saves the token\n\nThe pattern is that setters save."
    assert last(text).path == ("Door",)


def test_an_indented_paragraph_goes_on_with_its_item() -> None:
    text = "Open problems I see:\n\n1. The parser is slow.\n\n   It could use a table.\n\n2. The lexer is slow too."
    assert all("Open problems I see:" in clause.path for clause in split(text).clauses[1:])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("## Refactoring plan\n\n### Phase 1\n\nThe store takes tokens.", "plan"),
        ("## What this achieves\n\n- All changes go through one path.", "plan"),
        ("Each mode would:\n\n- The mode takes a session.", "plan"),
        ("## Code duplication\n\n- Two parsers read the same file.", "trouble"),
        ("## Root cause analysis\n\n**The problem:**\n\n- The API requires a result after each call.", ""),
        ("Errors and fixes:\n\n- The pool was exhausted because sessions stayed open.", ""),
        ("## Store\n\nThe store keeps tokens.", ""),
    ],
)
def test_what_is_planned_or_wrong_is_no_result_P5(text: str, reason: str) -> None:
    assert section(last(text)) == reason


def test_headings_announce_results_types_and_requests() -> None:
    assert results(last("## Key decisions\n\n- The store is a table."))
    assert not results(last("## Store\n\n- The store is a table."))
    assert headed(last("## Key decisions\n\n- The store is a table.")) == "decision"
    assert headed(last("Errors and fixes:\n\n- The store is a table.")) == "lesson"
    assert troubled(last("**The problem:**\n\n- The store is a table."))
    assert not troubled(last("Problem solving:\n\n- The store is a table."))
    assert asked(last("I want you to:\n\n- keep the old store"))
    assert sums_up("All done. Here's a summary.") and not sums_up("x" * 400 + " in summary")


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("## Hook contract\n\n### 1. Output\n\nAny text is added.", "Hook contract"),
        ("**ab.7 — Launch a review**\n\n- `Store` keeps tokens.", "Launch a review"),
        ("## Summary\n\n- `Store` keeps tokens.", ""),
        ("## Summary of all\n\n### Token store (ETS)\n\n- Entries have a TTL.", "Token store"),
    ],
)
def test_the_heading_that_names_something_is_the_context_R2(text: str, about: str) -> None:
    assert context(last(text)) == about


def test_a_file_for_agents_is_known_by_its_name_and_its_section_by_its_path() -> None:
    event = Wrote(turn="t", at=AT, text="Keep each below a minute.", path="/src/orchard/CLAUDE.md#Testing > Slow tests")
    assert instructs(event)
    assert not instructs(Wrote(turn="t", at=AT, text="x", path="/src/orchard/README.md#Testing"))
    clause = under(event, last(event.text))
    assert (clause.path, context(clause, written=True)) == (("Testing", "Slow tests"), "Slow tests")


@pytest.mark.parametrize("line", ["{indent}- item {n} of the list:\n", "{indent}- x\n", "- " + "word " * 200 + ":\n"])
def test_deep_and_long_lists_do_not_hang_the_worker_P2(line: str) -> None:
    text = "".join(line.format(indent=" " * n, n=n) for n in range(600))
    assert all(sum(map(len, clause.path)) < 4000 for clause in split(text).clauses)
