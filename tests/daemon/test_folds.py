"""What the folds of the tables may rely on: who is handed which operation, and what an index does not look at (U3)."""

from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memd.daemon.projections.folded import INDEXES
from memd.daemon.projections.records import indexed_alike
from memd.protocol.record import Record, Review
from tests.conftest import EXAMPLES
from tests.daemon.test_projection_suite import AT, EVERY, EVIDENCE, OPERATIONS, RECORDS, TheTables


@settings(max_examples=15 * EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(OPERATIONS, max_size=16))
def test_what_a_fold_is_not_handed_would_change_nothing_in_it_U3(tmp_path_factory: Any, steps: list[Any]) -> None:
    each = TheTables(tmp_path_factory.mktemp("tables"))
    entries = each.write(steps)
    all_to_all = each.open()
    kinds = all_to_all._readers  # white box: nothing but this decides who is handed what
    kinds.update(dict.fromkeys(EVERY, all_to_all._folds))
    all_to_all.apply(entries)
    assert each.contents(all_to_all) == each.contents(each.rows.tables)
    each.close(all_to_all)


@settings(max_examples=15 * EXAMPLES, deadline=None)
@given(RECORDS, st.sampled_from([(), (EVIDENCE,)]), st.sampled_from([0.1, 0.9]))
def test_no_index_looks_at_evidence_confidence_or_review_U3(before: Record, evidence: Any, sure: float) -> None:
    sources = msgspec.structs.replace(before.provenance, evidence=evidence)
    after = msgspec.structs.replace(before, rev=7, provenance=sources, confidence=sure, review=Review(next=AT))
    assert indexed_alike(before, after)
    for name, index in INDEXES.items():
        assert list(index(before)) == list(index(after)), name
    moved = msgspec.structs.replace(after, pool="elsewhere")
    assert not indexed_alike(before, moved)
