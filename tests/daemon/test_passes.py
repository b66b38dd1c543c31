"""Passes and revoked sources: every read is limited before ranking, and what is revoked is gone at once (A1-A3, Q2)."""

import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memd.clients.python import Client
from memd.daemon.projections.pool_directory import PoolDirectory
from memd.daemon.projections.stores import Stores
from memd.daemon.services.access.authorisation import Authorisation
from memd.daemon.services.access.passes import Passes, covers
from memd.daemon.services.pools.identity import Identity
from memd.daemon.services.pools.pools_service import FolderPools
from memd.daemon.services.profile.context_package import ContextPackager
from memd.daemon.services.profile.hot import ProfileCache
from memd.daemon.services.profile.profile_lines import ProfileLines, is_imposed
from memd.daemon.services.recall.feedback import RecentAnswers
from memd.daemon.services.recall.warm import SearchIndexes, WarmRecall
from memd.daemon.services.search_model import SearchModel
from memd.daemon.services.service import Handler, Reader
from memd.daemon.world import real_world
from memd.models import registry
from memd.protocol.errors import Denied, InvalidRequest, NotFound
from memd.protocol.event import Origin, Said
from memd.protocol.operation import Added, Decision, Granted, PoolOpened, Revoked, SessionOpened
from memd.protocol.passes import signed_pass, verified_pass
from memd.protocol.profile import GetContext
from memd.protocol.record import Provenance, Record, Signal, Span
from memd.protocol.request import Capture, Journal, Recall, Remember
from tests.conftest import EXAMPLES

AT = "2026-03-04T18:30:00+01:00"
NOW = 1_800_000_000_000_000
READER = Reader("g1", "reviewer", ("project/a",), ("pi",), NOW + 60_000_000)


@pytest.fixture
def passes(tmp_path: Path) -> Passes:
    return Passes(tmp_path / "pass.key", tmp_path / "pass_keys", lambda: NOW)


# --- the pass itself ------------------------------------------------------------------------------
def test_a_pass_says_who_may_read_what_and_until_when_A1(passes: Passes, tmp_path: Path) -> None:
    assert passes.verify(passes.sign(READER)) == READER
    assert stat.S_IMODE((tmp_path / "pass.key").stat().st_mode) == 0o600
    again = Passes(tmp_path / "pass.key", tmp_path / "pass_keys", lambda: NOW)
    assert again.verify(passes.sign(READER)) == READER, "the key is kept"


def forged(**changes: Any) -> dict[str, Any]:
    claims = {"sub": "x", "jti": "g", "exp": NOW // 1_000_000 + 60, "aud": "memd", "pools": [], "sources": []}
    return {name: value for name, value in {**claims, **changes}.items() if value is not None}


def test_nothing_but_a_good_signature_over_a_whole_pass_counts_A1(passes: Passes, tmp_path: Path) -> None:
    good = passes.sign(READER)
    own = form.load_pem_private_key((tmp_path / "pass.key").read_bytes(), None)
    stranger = Ed25519PrivateKey.generate()
    head, body, signature = good.split(".")
    wrong = [
        "",
        "no pass",
        good[:-6] + "AAAAAA",
        f"{head}.{body}x.{signature}",
        f"{head}.{body}.",
        jwt.encode(forged(), stranger, "EdDSA"),
        jwt.encode(forged(), None, "none"),  # type: ignore[arg-type]
        jwt.encode(forged(), "memd" * 10, "HS256"),
        *(jwt.encode(forged(**{name: None}), own, "EdDSA") for name in ("sub", "jti", "exp", "aud")),  # type: ignore[arg-type]
        jwt.encode(forged(aud="others"), own, "EdDSA"),  # type: ignore[arg-type]
        jwt.encode(forged(pools="project/a"), own, "EdDSA"),  # type: ignore[arg-type]
        jwt.encode(forged(exp=NOW // 1_000_000 - 1), own, "EdDSA"),  # type: ignore[arg-type]
        jwt.encode(forged(nbf=NOW // 1_000_000 + 10**7), own, "EdDSA"),  # type: ignore[arg-type]
    ]
    for token in wrong:
        with pytest.raises(Denied):
            passes.verify(token)


def test_a_pass_ends_though_it_was_verified_before_A1(tmp_path: Path) -> None:
    clock = [NOW]
    passes = Passes(tmp_path / "pass.key", tmp_path / "pass_keys", lambda: clock[0])
    token = passes.sign(READER)
    assert passes.verify(token) == READER
    clock[0] = READER.expires_at
    with pytest.raises(Denied, match="has expired"):
        passes.verify(token)


def test_another_key_counts_once_the_user_trusts_it_A1(passes: Passes, tmp_path: Path) -> None:
    identity_layer = Ed25519PrivateKey.generate()
    token = jwt.encode(forged(sub="ada", pools=["project/a"]), identity_layer, "EdDSA")
    with pytest.raises(Denied):
        passes.verify(token)
    (tmp_path / "pass_keys").mkdir()
    pem = identity_layer.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "pass_keys" / "org.pem").write_bytes(pem)
    assert passes.verify(token).pools == ("project/a",)


def test_a_program_without_a_home_verifies_with_the_keys_that_it_is_given_A1(passes: Passes, tmp_path: Path) -> None:
    token = passes.sign(READER)
    own = form.load_pem_private_key((tmp_path / "pass.key").read_bytes(), None)
    stranger = Ed25519PrivateKey.generate()
    assert isinstance(own, Ed25519PrivateKey)
    keys = [stranger.public_key(), own.public_key()]
    pass_ = verified_pass(token, keys, NOW)
    assert (pass_.subject, pass_.grant, pass_.pools, pass_.sources) == ("reviewer", "g1", ("project/a",), ("pi",))
    assert verified_pass(signed_pass(pass_, NOW, stranger), keys, NOW) == pass_
    for trusted, now in ((keys[:1], NOW), (keys, pass_.expires_at)):
        with pytest.raises(Denied):
            verified_pass(token, trusted, now)


def test_a_key_that_others_may_read_signs_nothing_A1(passes: Passes, tmp_path: Path) -> None:
    passes.sign(READER)
    (tmp_path / "pass.key").chmod(0o644)
    with pytest.raises(Denied, match="other users can read"):
        passes.sign(READER)


def test_a_start_imports_no_cryptography() -> None:
    code = "import sys, memd.daemon.server.startup; sys.exit(bool({'jwt', 'cryptography'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-P", "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("source", "document", "covered"),
    [
        ("pi", "pi:1", True),
        ("pi", "pip:1", False),
        ("pi:1", "pi:1", True),
        ("pi:1", "pi:12", False),
        ("claude-code:a", "claude-code:a/agent", True),
        ("memd", "memd:projects", True),
    ],
)
def test_what_a_source_covers_A3(source: str, document: str, covered: bool) -> None:
    assert covers(source, document) == covered


# --- random pools, pointers and passes --------------------------------------------------------------
POOLS = ("personal", "project/a", "project/b")
HOSTS = ("pi", "codex", "claude-code")
DOCUMENTS = [f"{host}:{n}" for host in HOSTS for n in range(2)]
TYPES = ("preference", "decision", "convention", "fact", "lesson")


def record(number: int, pool: str, documents: list[str], type: str, layer: Any, trust: Any) -> Record:
    words = f"We keep the lantern number{number} in the shed{number * 3} of the garden."
    spans = tuple(Span(document, f"t{number}", 0, 10) for document in documents)
    provenance = Provenance(author=trust, source=documents[0], trust=trust, spans=spans, quote=words, said_at=AT)
    return Record(
        id=f"id{number}",
        pool=pool,
        kind="fact" if type == "fact" else "note",
        content=words,
        description=words,
        layer=layer,
        status="active" if trust == "user" else "quarantined",
        tags=(type,),
        signal=Signal(importance=0.7),
        provenance=provenance,
    )


RECORDS = st.builds(
    record,
    st.integers(0, 40),
    st.sampled_from(POOLS),
    st.lists(st.sampled_from(DOCUMENTS), min_size=1, max_size=2, unique=True),
    st.sampled_from(TYPES),
    st.sampled_from(["L3", "L3", "L2"]),
    st.sampled_from(["user", "assistant"]),
)
SOURCES = st.lists(st.sampled_from([*HOSTS, *DOCUMENTS]), max_size=2, unique=True).map(tuple)


class Granter:
    """Stands for an identity layer whose passes are known to be good: the port, not the signature, is tried here."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    def verify(self, token: str) -> Reader:
        return self.reader


@settings(
    max_examples=12 * EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.lists(RECORDS, max_size=30, unique_by=lambda each: each.id),
    st.lists(st.sampled_from(POOLS), max_size=2, unique=True).map(tuple),
    SOURCES,
    SOURCES,
    st.sampled_from([("personal",), ("personal", "project/a"), ("project/b",), POOLS]),
    st.booleans(),
)
def test_no_read_reaches_past_a_pass_its_pools_or_a_revoked_source_A1_A2_A3(
    tmp_path_factory: Any,
    records: list[Record],
    pools: tuple[str, ...],
    sources: tuple[str, ...],
    revoked: tuple[str, ...],
    scope: tuple[str, ...],
    under_a_pass: bool,
) -> None:
    stores = Stores(tmp_path_factory.mktemp("passes"), real_world(), registry.info())
    opened = [PoolOpened(pool=pool, title=pool.rpartition("/")[2]) for pool in POOLS[1:]]
    sessions = [
        SessionOpened(document=each, origin=Origin(host="h", session=each), project="", at=AT) for each in DOCUMENTS
    ]
    stores.commit([*opened, *sessions, *(Added(record=each, decision=WHY) for each in records)])
    if revoked:  # by name alone, as if the records had come after it: what is hidden already can't be seen anyway
        stores.commit([Revoked(sources=revoked)])
    reader = Reader("g", "x", pools, sources, 2**60)
    identity, directory = Identity(stores.aliases, real_world().monotonic), PoolDirectory(stores)
    folder_pools = FolderPools(identity, stores, directory)
    access = Authorisation(stores, Granter(reader), directory, folder_pools.of)
    asking = access.reader("a pass" if under_a_pass else "")
    try:
        token = "a pass" if under_a_pass else ""
        handler = Handler("fast", lambda request, caller: request, under_pass=True, scoped=True)
        reached = access.caller(Recall(query="x", pools=tuple(scope), token=token), handler).scope
    except Denied:
        assert under_a_pass and not set(scope) & set(pools)
        stores.close()
        return
    permits = access.permits(asking)
    may_see = {each.id for each in records if each.pool in scope and all(_heard(each, d, revoked) for d in _of(each))}
    if under_a_pass:
        may_see &= {each.id for each in records if not pools or each.pool in pools}
        may_see &= {
            each.id for each in records if not sources or all(any(covers(s, d) for s in sources) for d in _of(each))
        }
    lines = ProfileLines(stores.profile, stores.archive, lambda text: len(text) // 4)
    told = ProfileCache(stores.profile, lines, lambda pool: pool, access.permits).profile(reached, 100_000, 0, asking)
    assert set(told.ids) <= may_see
    usual: Any = SimpleNamespace(window=lambda scope: 14, loads_playbook=lambda pool: False)
    package = ContextPackager(stores.records, stores.inbox.held, lines, lambda each: 1.0, real_world().now, usual)
    chosen = package.package(GetContext(days=3650), reached, permits)
    assert {each.record.id for each in chosen.selected} == {
        each.id for each in records if each.id in may_see and not is_imposed(each)
    }
    sought = SearchIndexes(stores.records, stores.keywords, stores.lines, stores.counters, stores.profile)
    warm = WarmRecall(
        sought,
        lambda: SearchModel(stores.vectors, None),
        lambda: 0.0,
        RecentAnswers(real_world()),
        lambda agent: None,
        real_world(),
    )
    found = warm.recall(Recall(query="lantern shed garden", limit=200, budget_tokens=10**6), reached, 0, None, permits)
    assert {hit.record.id for hit in found.hits} == may_see and found.filtered == 0, "dropped before it is counted"
    stores.close()


WHY = Decision(action="add", reason="a test")


def _of(record: Record) -> list[str]:
    return [span.document for span in record.provenance.spans]


def _heard(record: Record, document: str, revoked: tuple[str, ...]) -> bool:
    return not any(covers(source, document) for source in revoked)


def test_what_is_void_stays_void_and_a_source_comes_back_A3(tmp_path: Path) -> None:
    stores = Stores(tmp_path, real_world(), registry.info())
    stores.commit([Granted(grant="g", subject="x", expires_at=AT), Revoked(grants=("g",)), Revoked(sources=("pi",))])
    state = stores.grants.get("g")
    assert state is not None and state.revoked_at and [each.source for each in stores.grants.sources()] == ["pi"]
    stores.commit([Granted(sources=("pi",)), Revoked(grants=("never-seen",))])
    assert stores.grants.sources() == () and {each.id for each in stores.grants.all()} == {"g", "never-seen"}
    stores.close()


# --- through a running daemon ---------------------------------------------------------------------------
@pytest.fixture
def bearer(daemon: Any) -> Iterator[Callable[..., Client]]:
    """A client under a pass."""
    made: list[Client] = []

    def under(token: str) -> Client:
        made.append(Client(daemon.places, deadline_ms=20_000, token=token))
        return made[-1]

    yield under
    for each in made:
        each.close()


def remember(client: Client, text: str, host: str, folder: Path | str = "") -> str:
    origin = Origin(host=host, session=f"{host}-1", cwd=str(folder))
    return client.remember(Remember(text=text, turn=text[:20], at=AT, origin=origin)).record.id


def test_a_pass_limits_every_read_and_ends_at_once_A1(daemon: Any, bearer: Any, tmp_path: Path) -> None:
    folder = tmp_path / "orchard"
    folder.mkdir()
    (folder / ".memd-id").write_text("orchard-0001\n")
    with daemon.client() as owner:
        mine = remember(owner, "I prefer the copper kettle for tea.", "pi")
        theirs = remember(owner, "The orchard service deploys on Tuesdays.", "codex", folder)
        daemon.settle()
        pool = owner.get(theirs).pool
        assert pool.startswith("project/")
        told = owner.grant("reviewer", pools=[pool], for_s=3600)
        assert told.grant is not None and told.grant.pools == (pool,)
        reader = bearer(told.token)
        for question in ("which kettle for tea", "orchard deploys"):
            found = reader.recall(question, cwd=str(folder))
            assert found.scope == (pool,) and {hit.record.id for hit in found.hits} <= {theirs}
            assert not any("kettle" in turn.quote for turn in found.turns)
        assert reader.profile(cwd=str(folder)).scope == (pool,)
        assert [each.id for each in reader.list().records] == [theirs]
        assert {each.record.id for each in reader.export().records} <= {theirs}
        assert {each.record.id for each in reader.context(cwd=str(folder), days=3650).selected} <= {theirs}
        assert reader.get(theirs).id == reader.why(theirs).record.id == theirs
        for read in (reader.get, reader.why):
            with pytest.raises(NotFound):
                read(mine)
        for wish in (
            lambda: reader.recall("kettle"),
            lambda: reader.ask(Journal(), object),
            lambda: reader.forget([theirs]),
            lambda: reader.capture(Origin(host="x", session="y"), [Said(turn="1", at=AT, role="user", text="hello")]),
            lambda: reader.pin(theirs),
            reader.grants,
            lambda: reader.recall("x", pools=["personal"]),
        ):
            with pytest.raises(Denied):
                wish()
        assert owner.revoke(told.grant.id[:6]).grants == (told.grant.id,)
        with pytest.raises(Denied, match="revoked"):
            reader.recall("orchard deploys", cwd=str(folder))
        assert owner.recall("kettle").hits, "the user reads everything"
        assert (daemon.places.state / "pass.key").stat().st_mode & 0o077 == 0


def test_a_revoked_source_is_gone_from_the_next_answer_and_comes_back_A3(daemon: Any) -> None:
    with daemon.client() as client:
        gone = remember(client, "I prefer the copper kettle for tea.", "pi")
        stays = remember(client, "I prefer the window seat on trains.", "codex")
        daemon.settle()
        assert {gone, stays} <= set(client.profile().ids)
        hiss = Said(turn="h", at=AT, role="assistant", text="Hm, a whistling samovar hisses at dawn, does it?")
        client.capture(Origin(host="pi", session="pi-1"), [hiss])
        assert client.recall("copper kettle").hits and client.recall("whistling samovar hisses").turns
        told = client.revoke(source="pi")
        assert (told.hidden, told.documents) == (1, ("pi:pi-1",))
        assert client.profile().ids == (stays,)
        for question in ("copper kettle", "kettle tea", "whistling samovar hisses"):
            answer = client.recall(question)
            assert gone not in {hit.record.id for hit in answer.hits} and not answer.turns
        with pytest.raises(NotFound):
            client.get(gone)
        assert gone not in {each.id for each in client.list().records}
        # what comes from it later is neither shown nor kept from coming back
        late = remember(client, "I prefer the green lamp at night.", "pi")
        daemon.settle()
        assert late not in client.profile().ids and not client.recall("green lamp").hits
        assert [each.source for each in client.grants().sources] == ["pi"]
        for wrong in ("nobody", "pi:"):
            with pytest.raises((NotFound, InvalidRequest)):
                client.revoke(source=wrong)
        assert client.grant(sources=["pi"], back=True).shown == 1
        assert {gone, stays, late} <= set(client.profile().ids) and client.recall("copper kettle").hits
        with pytest.raises(NotFound):
            client.grant(sources=["pi"], back=True)


def test_the_same_holds_after_a_restart_and_a_rebuild_A3(daemon: Any) -> None:
    with daemon.client() as client:
        gone = remember(client, "I prefer the copper kettle for tea.", "pi")
        token = client.grant("ci", for_s=600).token
        client.revoke(source="pi:pi-1")
    daemon.terminate()
    daemon.start()
    with daemon.client() as client, Client(daemon.places, 20_000, token) as reader:
        client.rebuild("tables")
        assert gone not in client.profile().ids and not reader.recall("copper kettle").hits
        assert client.capture(
            Origin(host="pi", session="pi-1"), [Said(turn="z", at=AT, role="user", text="The kettle is loud.")]
        ).accepted, "a revoked source is not shown; pausing it is another wish"
        assert not client.recall("kettle loud").turns


def test_a_request_with_a_pass_is_one_field_more_on_the_wire_A1(daemon: Any) -> None:
    with daemon.client() as client:
        with pytest.raises(Denied):
            Client(daemon.places, 20_000, "nonsense").recall("x")
        origin = Origin(host="pi", session="s")
        wish = Capture(origin=origin, events=(Said(turn="1", at=AT, role="user", text="hello"),), token="nonsense")
        with pytest.raises(Denied):
            client.ask(wish, object)
