"""A record is found by the category of what it names, which no answer shows, and its own words count more (Q7, P1)."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from memd.daemon.projections.terms import TermDocument, TermIndex
from tests.daemon.test_deep import done
from tests.daemon.test_recall import bring, record

RUFF = record("personal", "tools", 1, "ruff checks the repository before a push.")


def test_a_category_finds_a_record_and_is_not_shown_Q7(daemon: Any) -> None:
    with daemon.client() as client:
        bring(client, [RUFF, record("personal", "tools", 2, "The cello is at home.")])
        hits = client.recall("linter?").hits
        assert [hit.record.id for hit in hits] == [RUFF.id]
        assert b"linter" not in msgspec.json.encode(hits)
        done(client, client.rebuild("keywords"))
        assert [hit.record.id for hit in client.recall("linter?").hits] == [RUFF.id]
        done(client, client.job(client.verify().id))


@pytest.mark.parametrize("committed", [False, True])
def test_the_own_word_leads_the_category_Q7(tmp_path: Path, committed: bool) -> None:
    index = TermIndex(tmp_path / "index", scoped=True, categories="a")
    texts = [
        TermDocument("named", "pool", True, "ruff checks it", categories="linter"),
        TermDocument("own", "pool", True, "a linter checks it"),
        TermDocument("other", "pool", True, "the cello is at home", categories="instrument"),
        TermDocument("apart", "elsewhere", True, "ruff", categories="linter"),
    ]
    index.put([(text, 1) for text in texts], (), 1)
    if committed:
        index.commit()
    scores, possible, *_ = index.search("linter", ["pool"], 10)
    assert list(scores) == ["own", "named"]
    assert 0 < scores["named"] < scores["own"] < possible


def test_other_categories_make_another_index_Q7(tmp_path: Path) -> None:
    index = TermIndex(tmp_path / "index", scoped=True, categories="a")
    index.put([(TermDocument("one", "pool", True, "ruff", categories="linter"), 7)], (), 7)
    index.close()
    del index
    same = TermIndex(tmp_path / "index", scoped=True, categories="a")
    assert same.applied == 7
    same.close()
    del same
    assert TermIndex(tmp_path / "index", scoped=True, categories="b").applied == 0


@pytest.mark.parametrize("scoped", [False, True])
def test_a_word_of_every_text_keeps_its_share_of_the_possible_score_after_a_commit_Q7(
    tmp_path: Path, scoped: bool
) -> None:
    index = TermIndex(tmp_path / "index", scoped=scoped)
    texts = [TermDocument(f"text{n}", "pool", True, f"tabs before spaces {n}") for n in range(200)]
    index.put([(text, 1) for text in texts], (), 1)
    for _ in range(2):
        found = index.search("tabs", ["pool"], 5)
        assert len(found.by_id) == 5 and 0.4 < max(found.by_id.values()) / found.possible < 1
        index.commit()
