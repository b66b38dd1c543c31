"""How much of a record asks: the share of its words that stand in questions (Q2)."""

import pytest

from memd.daemon.projections.lines import asks


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("Is the archive backed up?", 1.0),
        ("It is, every night.", 0.0),
        ("We moved the archive yesterday. Who has its key?", 0.5),
        ("Who has its key? We moved the archive yesterday.", 0.5),
        ('She asked "why?" and hung up.', 0.0),
        ('"Who has the key?"', 1.0),
        ("他走了。为什么？", 0.5),
        ("هل وصل القطار؟", 1.0),
        ("See https://example.org/a?b=c for more.", 0.0),
        ("", 0.0),
    ],
)
def test_who_tells_and_asks_in_one_breath_asks_in_part_Q2(text: str, share: float) -> None:
    assert asks(text) == pytest.approx(share, abs=0.06)
