"""Cuts: whatever stood somewhere stands at its moved place afterwards (P-18)."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from memd.daemon.storage.cuts import joined, moved, replaced
from memd.protocol.operation import Cut

WORDS = "".join(chr(0x100 + number) for number in range(60))
"""Each character stands once, so that a place can be told from what stands there."""
PLACES = st.tuples(st.integers(0, 60), st.integers(0, 60)).map(sorted).filter(lambda pair: pair[0] < pair[1])
CUTS = st.lists(PLACES.map(lambda pair: Cut(1, pair[0], pair[1], "jwt")), max_size=5)


@given(CUTS, PLACES)
def test_a_span_keeps_its_words_and_takes_secrets_whole_P18(found: list[Cut], span: tuple[int, int]) -> None:
    cuts = joined(found)
    assert all(left.end <= right.start for left, right in pairwise(cuts))
    start, end = moved(*span, cuts)
    after = replaced(WORDS, cuts)[start:end]
    secret = {place for cut in cuts for place in range(cut.start, cut.end)}
    kept = "".join(WORDS[place] for place in range(*span) if place not in secret)
    marks = sum(cut.start < span[1] and span[0] < cut.end for cut in cuts)
    assert after.replace("[redacted:jwt]", "") == kept
    assert after.count("[redacted:jwt]") == marks
