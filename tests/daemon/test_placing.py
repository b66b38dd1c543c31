"""No record lies wider than any of its sources, whatever the stages proposed (A2, P7, P-17)."""

from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memd.daemon.projections.placement import SourcePool, documents_of, may_hold, narrowed
from memd.daemon.projections.stores import Stores
from memd.daemon.services.distillation.proposals import operations_of
from memd.daemon.services.records.importing import import_records
from memd.daemon.world import real_world
from memd.models import registry
from memd.protocol.event import Origin, Visibility
from memd.protocol.operation import Added, AliasAdded, Decision, Merged, SessionOpened, Updated
from memd.protocol.record import Evidence, Provenance, Record, Span
from memd.protocol.reply import ExportedRecord
from memd.protocol.request import ImportRecords
from memd.stages.batch import Proposal
from tests.conftest import EXAMPLES

AT = "2026-01-01T00:00:00Z"
PROJECTS = ("", "project/a", "project/b", "unbound/u", "unbound/joined-to-a")
DOCUMENTS = {
    f"h:{number}-{visibility}": (project, visibility)
    for number, project in enumerate(PROJECTS)
    for visibility in get_args(Visibility)
}
UNKNOWN = "h:never-opened"
POOLS = ("personal", "project/a", "project/b", "unbound/u")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    folder = tmp_path_factory.mktemp("placing") / "data"
    folder.mkdir(mode=0o700)
    found = Stores(folder, real_world(), registry.info())
    found.commit(
        [
            SessionOpened(
                document=document,
                origin=Origin(host="h", session=document[2:], visibility=visibility),
                project=project,
                at=AT,
            )
            for document, (project, visibility) in DOCUMENTS.items()
        ]
    )
    found.commit([AliasAdded(pool="project/a", names=("pool:unbound/joined-to-a",), by="user")])
    yield found
    found.close()


SPANS = st.builds(Span, st.sampled_from([*DOCUMENTS, UNKNOWN]), st.sampled_from("12"), st.just(0), st.just(5))
EVIDENCE = st.builds(Evidence, kind=st.just("restated"), span=SPANS, trust=st.just("user"), at=st.just(AT))
IDS = st.integers(0, 5).map(lambda number: f"{number:026d}")


def record(
    id: str, pool: str, spans: list[Span], evidence: list[Evidence], visibility: Visibility, key: str, status: Any
) -> Record:
    provenance = Provenance(
        author="user",
        source="h:s",
        trust="user",
        spans=tuple(spans),
        quote="quote",
        said_at=AT,
        visibility=visibility,
        evidence=tuple(evidence),
    )
    return Record(
        id=id,
        pool=pool,
        kind="note",
        content=f"c {id}",
        description=f"d {id}",
        provenance=provenance,
        key=key,
        status=status,
    )


RECORDS = st.builds(
    record,
    IDS,
    st.sampled_from(POOLS),
    st.lists(SPANS, min_size=1, max_size=3),
    st.lists(EVIDENCE, max_size=2),
    st.sampled_from(["private", "shared"]),
    st.sampled_from(["", "user.editor"]),
    st.sampled_from(["active", "provisional", "quarantined"]),
)


def proposal(found: Record, action: Any, target: str, evidence: Evidence) -> Proposal:
    decision = Decision(action=action, reason="a test")
    return Proposal(record=found, decision=decision, target=target, evidence=evidence if action == "noop" else None)


PROPOSALS = st.builds(proposal, RECORDS, st.sampled_from(["add", "update", "noop"]), IDS, EVIDENCE)


def holds(found: Record) -> bool:
    """The invariant, told without the code that keeps it."""
    home = {"unbound/joined-to-a": "project/a", "": "personal"}
    places = [DOCUMENTS.get(document, ("nowhere", "private")) for document in documents_of(found)]
    pools = {home.get(project, project) for project, _ in places}
    wide = found.pool != "personal" and pools != {found.pool}
    shown = found.provenance.visibility == "shared"
    return not wide and not (shown and (found.pool == "personal" or any(v == "private" for _, v in places)))


@settings(max_examples=60 * EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batch=st.lists(PROPOSALS, min_size=1, max_size=6))
def test_no_proposal_puts_a_record_wider_than_its_sources_A2_P17(stores: Stores, batch: list[Proposal]) -> None:
    stores.commit(operations_of(stores, batch))
    for found in stores.records.everything():
        assert holds(found), (found.pool, found.provenance)
    live = [(each.pool, each.key) for each in stores.records.everything() if each.key and each.status == "active"]
    assert all(stores.records.holding_key(*place) for place in live)


@settings(max_examples=60 * EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(found=RECORDS)
def test_an_import_puts_no_record_wider_than_its_sources_A2_P25(stores: Stores, found: Record) -> None:
    id = f"{len(stores.journal.slice(0, 100_000)):026d}"
    coming = msgspec.structs.replace(found, id=id)
    import_records(stores, ImportRecords(records=(ExportedRecord(record=coming),)))
    kept = stores.records.get(id)
    assert kept is not None and holds(kept)


@given(
    sources=st.lists(st.builds(SourcePool, st.sampled_from(["", *POOLS]), st.sampled_from(["private", "shared"]))),
    found=RECORDS,
)
def test_narrowing_again_changes_nothing_and_never_widens_A2(sources: list[SourcePool], found: Record) -> None:
    once = narrowed(found, sources)
    assert narrowed(once, sources) == once
    assert once.pool in (found.pool, "personal")
    assert may_hold(once.pool, sources)
    assert (once.provenance.visibility, found.provenance.visibility) != ("shared", "private")


def test_evidence_from_elsewhere_makes_a_record_of_its_own_A2(stores: Stores) -> None:
    def at(document: str) -> Span:
        return Span(document, "9", 0, 5)

    target = record("z" * 26, "project/b", [at("h:2-shared")], [], "shared", "", "active")
    said = record("y" * 26, "personal", [at("h:0-private")], [], "private", "", "active")
    here = Evidence(kind="restated", span=Span("h:2-shared", "8", 0, 5), trust="user", at=AT)
    hushed = Evidence(kind="restated", span=Span("h:2-private", "8", 0, 5), trust="user", at=AT)
    away = Evidence(kind="restated", span=at("h:0-private"), trust="user", at=AT)
    made = operations_of(stores, [proposal(target, "add", "", away), proposal(said, "noop", target.id, away)])
    assert [type(each) for each in made] == [Added, Added]
    assert [each.record.pool for each in made if isinstance(each, Added)] == ["project/b", "personal"]
    stores.commit(made)
    assert operations_of(stores, [proposal(said, "noop", target.id, hushed)]) == []
    again = operations_of(stores, [proposal(said, "noop", target.id, here)])
    assert [type(each) for each in again] == [Merged]
    stores.commit(again)
    kept = stores.records.get(target.id)
    assert kept is not None and holds(kept)


def test_a_record_that_is_refined_stays_where_the_user_put_it_P3(stores: Stores) -> None:
    span = Span("h:0-private", "7", 0, 5)
    found = record("x" * 26, "project/b", [span], [], "private", "", "provisional")
    placed = msgspec.structs.replace(found, placed=True)
    stores.commit([Added(record=placed, decision=Decision(action="add", reason="a test"))])
    refined = record("x" * 26, "personal", [span], [], "private", "", "active")
    made = operations_of(
        stores, [proposal(refined, "update", "", Evidence(kind="restated", span=span, trust="user", at=AT))]
    )
    assert [(type(each), each.record.pool) for each in made if isinstance(each, Updated)] == [(Updated, "project/b")]
