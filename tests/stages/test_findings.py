"""What an agent finds on the way or sums up, and which of it holds for whoever comes later (P-5, R2, U5)."""

from collections.abc import Callable

import pytest

from memd.protocol.event import Said
from memd.stages.batch import Batch
from memd.stages.subjects import description, unnamed

Distil = Callable[..., Batch]
AT = "2026-03-10T09:00:00+01:00"

STEP = "Let me change that:"
FIXES = "4. Errors and fixes:\n"
TERMS = "2. Key Technical Concepts:\n"
DONE = "All done. Here's a summary of the changes:\n\n"


def told(distil: Distil, text: str, role: str = "assistant") -> list[str]:
    said = "assistant" if role == "assistant" else "user"
    return [one.description for one in distil(Said(turn="t", at=AT, role=said, text=text), project="p/x").candidates]


@pytest.mark.parametrize(
    "words",
    [
        "The problem is that the wrapper only holds the rows that were rendered first.",
        "The `submitOrder` function doesn't pass the discount when the cart has one item, so the total is wrong.",
        "I see the issue. When the list is empty, the paginator divides by zero because the page size isn't set.",
        "On the invoice page, the `TaxTable` gets its rates twice since the effect has no dependencies.",
        "The report query fell back to the archive because no row of this year matched.",
        "However, I notice there's an unquoted variable in the backup section, which would break on a space.",
        "Looking at the reducer, the old state is mutated because the spread is on the wrong level.",
        "The generated client uses `Buffer` which browsers don't support for uploads. I need to rewrite it with blobs.",
        "Mypy knows `row` is always a `CartRow` (never None) because of the check in `load_cart`. The guard is dead.",
    ],
)
def test_a_fault_of_the_one_thing_at_hand_goes_with_its_step_P5(distil: Distil, words: str) -> None:
    assert told(distil, f"{words} {STEP}") == []
    report = "I looked at how the cart, the list and the backup work together. " * 6
    assert told(distil, f"{report}\n\n{words}\n\n{STEP}") == [], "in a longer turn as well"


def test_an_answer_that_ends_with_an_offer_is_no_remark_on_the_way_P5(distil: Distil) -> None:
    finding = "The importer drops rows without an id because the upstream export marks deleted ones so."
    answer = "I looked at how the cart, the list and the backup work together. " * 6
    assert told(distil, f"{answer}\n\n{finding} Let me know if the rows are needed after all.") == [finding]
    assert told(distil, f"{answer}\n\n{finding} Let me add the missing check to the mapper.") == []


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            "The issue is that `useMemo` only compares by reference, so a new array makes it run again.",
            "`useMemo` only compares by reference, so a new array makes it run again.",
        ),
        ("Redis evicts keys without a TTL under `allkeys-lru`, so sessions can vanish when memory runs low.", ""),
        ("The deploy script expects `CLOUD_PROFILE` to be set, otherwise it silently uses the default account.", ""),
        ("The worker process can't see the order because the transaction of the running test is open.", ""),
    ],
)
def test_what_holds_for_all_of_its_kind_is_kept_without_what_led_to_it_P5(
    distil: Distil, words: str, line: str
) -> None:
    assert told(distil, f"{words} Let me look at the callers.") == [line or words]


@pytest.mark.parametrize(
    "item",
    [
        "**Helper line too long**: Broke the tuple across several lines.",
        "**Wrong totals in the preview**: The first decoder was broken. Rewrote it with a lookup table.",
        "Verified all changes: `go build ./...` (exit 0), `go vet` (exit 0), gofmt clean.",
        "Initial assumption that the cache caused the stale prices - disproven by switching it off.",
        "**Conflict in `poetry.lock`** - caused by `3fa9c21d` being a squashed copy of our branch.",
        "I applied the new rule at once and halted rather than repeating what the prior session had done.",
        "**Import refused the file** - resolved by evidence rather than assumption (see Problem Solving).",
        "**New index uses CONCURRENTLY (unsupported in SQLite)**: Rewrote it by the pattern already established here.",
    ],
)
def test_an_account_of_an_error_that_teaches_nothing_is_none_P5(distil: Distil, item: str) -> None:
    assert told(distil, f"{FIXES}   - {item}\n") == []


@pytest.mark.parametrize(
    "item",
    [
        "**Greek queries find nothing**: Known limitation - the stemmer handles English well but no other script.",
        "**fastzip crash**: fastzip's self-test fails with zlib 1.4. Fixed by using `zlib` directly.",
        "Mail tests: The project had none. Added a stub server and established an inbox pattern for later ones.",
    ],
)
def test_an_account_of_an_error_is_kept_where_it_teaches_P5(distil: Distil, item: str) -> None:
    assert len(told(distil, f"{FIXES}   - {item}\n")) == 1


@pytest.mark.parametrize(
    "item",
    [
        "**Rate limiting** - bounds how many calls a client makes in a minute",
        "**Visitor pattern** - separates an operation from the nodes of a tree",
        "**World Meteorological Organization (WMO)**: agency of the United Nations for weather and climate",
    ],
)
def test_a_term_that_any_dictionary_explains_is_none_of_the_project_P5(distil: Distil, item: str) -> None:
    assert told(distil, f"{TERMS}   - {item}\n") == []


@pytest.mark.parametrize(
    "item",
    [
        "**Quarry (qy)** - Git-backed queue of jobs used for all nightly imports",
        "**OrderFold** - Folds booking events into the rows of a statement, one for each day",
        "Opening: `open_sheets()` creates all sheets of a workbook in the session of its reader",
    ],
)
def test_a_term_of_the_project_is_kept_P5(distil: Distil, item: str) -> None:
    assert len(told(distil, f"{TERMS}   - {item}\n")) == 1


@pytest.mark.parametrize(
    "items",
    [
        "### `src/cart/page.tsx`\n- `canSubmit` extended with the check of the address, so many fields are needed\n",
        "### `src/cart/page.tsx`\n- `handleSubmit` on success: closes the panel, advances to step five\n",
        '**Both guides:**\n- Disks: `4x 960 GB` + "spare" → `2x 960 GB` (mirrored)\n',
        "**Both guides:**\n- New **Saving and resetting** section added, which explains both buttons\n",
        "- **Format detection**: Successfully implemented automatic detection of the formats of all exports\n",
        "- Created intelligent version comparison supporting both numbers and words of releases\n",
    ],
)
def test_what_was_edited_is_no_result_P5(distil: Distil, items: str) -> None:
    assert told(distil, DONE + items) == []


def test_an_edit_is_kept_with_its_reason_P5(distil: Distil) -> None:
    why = "- Prices are stored in cents because floats lose a tenth on the yearly report\n"
    assert len(told(distil, f"{DONE}### `src/cart/price.py`\n{why}")) == 1


def test_what_was_asked_is_no_result_P5(distil: Distil) -> None:
    request = "Analyze the files in `./data/import` and align the parsers with their real structures."
    assert told(distil, f"## 1. Primary Request and Intent\n\n- {request}\n") == []
    assert told(distil, f"**Initial Request**: {request}") == []


def test_this_something_must_have_been_named_R2() -> None:
    assert unnamed("The scanner *requires* this driver — nothing replaces it.")
    assert not unnamed("Each export has a header, and all readers rely on this header.")
    assert not unnamed("Tests run in a container, and none of this project writes outside of it.")


def test_an_item_is_told_with_the_heading_that_holds_a_name_R2(distil: Distil) -> None:
    report = (
        "# Exploration of the order pages\n\n## 2. How GridState.Live is used in OrderList\n\n"
        "- Row selection: `select_rows/2` returns the ids of all rows that are checked, in the order of the page\n"
    )
    (line,) = told(distil, report)
    assert line.endswith("(How GridState.Live is used in OrderList)")


def test_a_name_keeps_its_underscore_and_a_long_line_ends_with_a_sentence_R2() -> None:
    name = "The loader uses _ROW_TO_TYPE for all files."
    assert description(name, "assistant", "") == name
    whole = "When `@missing` is set, no chart is drawn, so none of its assigns is read. "
    rest = "But `import ... from` is never called for that branch, which means that the assign of the executor " * 2
    assert description(whole + rest, "assistant", "") == whole.strip() + " …"


def test_what_the_user_believed_is_no_fact_P5(distil: Distil) -> None:
    words = "i thought the jobs ran every night, in fact i saw them in the calendar"
    batch = distil(Said(turn="t", at=AT, role="user", text=words), project="p/x")
    assert all(one.is_noted for one in batch.candidates)
