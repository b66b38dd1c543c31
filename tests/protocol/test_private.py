"""`<private>…</private>`: its words leave no trace, whatever stands around it (row: `<private>` spans, W5)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.protocol.event import Noted, Ran, Reworded, Said, ToolCalled, Wrote
from memd.protocol.private import PLACEHOLDER, event_without_private, without_private

AT = "2026-01-01T00:00:00Z"

CASES = [
    ("a <private>x</private> b", f"a {PLACEHOLDER} b"),
    ("a <private>x <private>y</private> z</private> b", f"a {PLACEHOLDER} b"),
    ("a <private>x", f"a {PLACEHOLDER}"),
    ("a <private>x <private>y</private> z", f"a {PLACEHOLDER}"),
    ("```sh\n<private>\nexport KEY=x\n</private>\n```", f"```sh\n{PLACEHOLDER}\n```"),
    ("<private>x</private><private>y</private>z", f"{PLACEHOLDER}{PLACEHOLDER}z"),
    ("<PRIVATE why='home'>x</ Private > t", f"{PLACEHOLDER} t"),
    ("<private/> t", f"{PLACEHOLDER} t"),
    ("&lt;private&gt;x&lt;/private&gt; t", f"{PLACEHOLDER} t"),
    (r'{"c":"\u003cprivate\u003ex\u003c/private\u003e"}', f'{{"c":"{PLACEHOLDER}"}}'),
    (r'{"c":"<private>x<\/private>"}', f'{{"c":"{PLACEHOLDER}"}}'),
    ("</private> stays", "</private> stays"),
    ("#include <private/x.h>", "#include <private/x.h>"),
    ("a private matter", "a private matter"),
]


@pytest.mark.parametrize(("words", "seen"), CASES)
def test_a_private_span_is_seen_as_private_and_no_more_W5(words: str, seen: str) -> None:
    assert without_private(words) == seen


PIECES = st.lists(
    st.sampled_from(["<private>", "</private>", "<private/>", "```", "\n", "<", ">", "word ", "é", "<b>", " "]),
    max_size=12,
)


@given(before=PIECES, inside=PIECES, after=PIECES, closed=st.booleans())
def test_no_private_word_is_left_and_twice_is_as_once_W5(
    before: list[str], inside: list[str], after: list[str], closed: bool
) -> None:
    """`inside` opens at least as often as it closes, so the secret stands in a span whatever is around."""
    kept: list[str] = []
    for piece in inside:
        if piece != "</private>" or kept.count("<private>") > kept.count("</private>"):
            kept.append(piece)
    words = "".join([*before, "<private>", *kept, "s3cr3t", "</private>" if closed else "", *after])
    clean = without_private(words)
    assert "s3cr3t" not in clean and PLACEHOLDER in clean
    assert without_private(clean) == clean


def test_every_kind_of_event_is_shut_W5() -> None:
    words = "open <private>s3cr3t</private> again"
    events = [
        Said(turn="1", at=AT, role="user", text=words),
        Said(turn="1", at=AT, role="assistant", text=words),
        Noted(turn="1", at=AT, text=words),
        Reworded(turn="1", at=AT, record="r", text=words),
        Wrote(turn="1", at=AT, text=words),
        ToolCalled(turn="1", at=AT, name="bash", arguments=words),
        Ran(turn="1", at=AT, command=words),
    ]
    for event in events:
        clean = repr(event_without_private(event))
        assert "s3cr3t" not in clean and PLACEHOLDER in clean, event


@pytest.mark.parametrize("unit", ["<private ", "<private \n", "< ", "<private>", "</private", "<private" + " " * 300])
def test_a_long_text_of_marks_takes_no_longer_for_being_odd(unit: str) -> None:
    without_private(unit * (500_000 // len(unit)))
