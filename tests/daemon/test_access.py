"""Each request under a pass: no answer names what the pass does not cover, and none leaves a trace (A1).

The cases follow from the list of requests: a read without an entry in `PAIRS` fails, and every other request is tried
as one that a pass may not send.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import jwt
import msgspec
import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from memd.clients.python import Client
from memd.daemon.projections.pool_directory import PoolDirectory
from memd.daemon.projections.stores import Stores
from memd.daemon.services.access.authorisation import Authorisation
from memd.daemon.services.pools.identity import Identity
from memd.daemon.services.pools.pools_service import FolderPools
from memd.daemon.services.service import Handler, Reader
from memd.daemon.world import real_world
from memd.models import registry
from memd.protocol.errors import Denied, InvalidRequest, MemdError, NotFound
from memd.protocol.event import Origin, Repository, Said
from memd.protocol.map import Clock, GetMap, GetRhythm
from memd.protocol.operation import Added, Decision, Merged, Moved, PoolOpened, SessionOpened
from memd.protocol.profile import GetContext, Printed, Profile
from memd.protocol.record import Evidence, Provenance, Record, Span
from memd.protocol.request import Capture, Export, Get, List, Recall, Remember, Request, Why
from tests.conftest import RunningDaemon
from tests.daemon.test_dispatch import NAMES, READS, REQUESTS, example

AT = "2026-03-04T18:30:00+01:00"
MARK = "MARK"
"""What a request names; replaced in the reply, which may repeat it."""


@dataclass
class Household:
    """A home with two projects, an agent and personal records; one record was moved out of the first project."""

    daemon: RunningDaemon
    keys: Path
    folders: dict[str, Path]
    pools: dict[str, str] = field(default_factory=dict[str, str])
    ids: dict[str, str] = field(default_factory=dict[str, str])
    before_move: str = ""
    delivered: str = ""
    tokens: dict[str, str] = field(default_factory=dict[str, str])

    def answer(self, request: Any, token: str) -> bytes:
        """Return the encoded reply, or the error."""
        with Client(self.daemon.places, 20_000, token) as client:
            try:
                return msgspec.json.encode(client.ask(request, object))
            except MemdError as error:
                return msgspec.json.encode([error.code, error.message, error.hint])

    def secrets(self) -> list[str]:
        """What no answer under the pass of the orchard may contain."""
        hidden = [name for name in self.ids if name not in ("deploys", "stays")]
        names = [self.pools["cellar"], "cellar", "vault7", "kettle", "samovar", "lantern", "barrel", "tuba", "tunnel"]
        return [*names, *(self.ids[name][:12] for name in hidden)]


def remember(client: Client, text: str, host: str, folder: Path | str = "") -> str:
    origin = Origin(host=host, session=f"{host}-1", cwd=str(folder))
    return client.remember(Remember(text=text, turn=text, at=AT, origin=origin)).record.id


@pytest.fixture(scope="module")
def household(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Household]:
    root = tmp_path_factory.mktemp("access")
    (root / "home").mkdir(mode=0o700)
    folders = {name: root / name for name in ("orchard", "cellar")}
    for number, (name, folder) in enumerate(folders.items()):
        folder.mkdir()
        (folder / ".memd-id").write_text(f"{name}-000{number}\n")
    daemon = RunningDaemon({**os.environ, "MEMD_HOME": str(root / "home")})
    daemon.start()
    built = Household(daemon, daemon.places.config / "pass_keys", folders)
    _fill(built)
    yield built
    daemon.terminate()


def _fill(household: Household) -> None:
    daemon, folders = household.daemon, household.folders
    with daemon.client() as owner:
        ids, pools = household.ids, household.pools
        ids["kettle"] = remember(owner, "I prefer the copper kettle for tea.", "pi")
        ids["deploys"] = remember(owner, "The orchard service deploys on Tuesdays.", "codex", folders["orchard"])
        ids["stays"] = remember(owner, "The orchard service logs to the green disk.", "codex", folders["orchard"])
        ids["moved"] = remember(owner, "The orchard lantern code is vault7.", "codex", folders["orchard"])
        ids["hidden"] = remember(owner, "The orchard tunnel opens at midnight.", "codex", folders["orchard"])
        ids["cellar"] = remember(owner, "The cellar stores one barrel per shelf.", "aider", folders["cellar"])
        owner.open_agent("tuba", role="plays the tuba")
        said = Said(turn="h", at=AT, role="assistant", text="Hm, a whistling samovar hisses in the cellar, does it?")
        owner.capture(Origin(host="aider", session="aider-1", cwd=str(folders["cellar"])), [said])
        daemon.settle()
        pools["orchard"], pools["cellar"] = owner.get(ids["deploys"]).pool, owner.get(ids["cellar"]).pool
        assert pools["orchard"] == owner.get(ids["moved"]).pool and len(set(pools.values())) == 2
        assert all(pool.startswith("project/") for pool in pools.values())
        household.before_move = datetime.now(UTC).isoformat()
        owner.move_records([ids["moved"]], "personal")
        owner.propose_forget([ids["hidden"]], hide=True)
        owner.recall("orchard lantern kettle", deep=True, cwd=str(folders["cellar"]))  # indexes the turns
        household.delivered = owner.profile(document="aider:aider-1", delivery="sticky", trigger="start").rev
        owner.ask(Printed(document="aider:aider-1", rev=household.delivered), object)
        grant = owner.grant("reviewer", pools=[pools["orchard"]], for_s=3600)
        personal = owner.grant("valet", pools=["personal"], for_s=3600)
        source = owner.grant("listener", sources=["codex"], for_s=3600)
        everything = owner.grant("auditor", for_s=3600)
    tokens = household.tokens
    tokens |= {"orchard": grant.token, "personal": personal.token, "source": source.token, "all": everything.token}
    tokens["forged"] = jwt.encode(_claims(pools["orchard"]), Ed25519PrivateKey.generate(), "EdDSA")
    own = form.load_pem_private_key((daemon.places.state / "pass.key").read_bytes(), None)
    tokens["expired"] = jwt.encode(_claims(pools["orchard"], exp=1_700_000_000), own, "EdDSA")  # type: ignore[arg-type]


def _claims(pool: str, **changes: Any) -> dict[str, Any]:
    claims = {"sub": "x", "jti": "foreign", "exp": 4_000_000_000, "aud": "memd", "pools": [pool], "sources": []}
    return {**claims, **changes}


@pytest.fixture
def withdrawn(household: Household) -> Iterator[tuple[str, Path]]:
    """A pass of another issuer, and the file of its key, which is trusted at first."""
    key = Ed25519PrivateKey.generate()
    pem = key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    household.keys.mkdir(exist_ok=True)
    path = household.keys / "issuer.pem"
    path.write_bytes(pem)
    yield jwt.encode(_claims(household.pools["orchard"]), key, "EdDSA"), path
    path.unlink(missing_ok=True)


# --- names of what the pass does not cover --------------------------------------------------------------------------
Pair = tuple[Request, Request, str, str]
"""A request that names something out of reach, one that names nothing that exists, and both names."""


def _of_pools(household: Household, build: Callable[..., Request], **fields: Any) -> Iterator[Pair]:
    orchard, cellar = household.pools["orchard"], household.pools["cellar"]
    for name in (cellar, cellar[:12], cellar.partition("/")[2][:6], "cellar", "personal", "agent/tuba", "tuba"):
        for beside in ((), (orchard,)):
            yield build(pools=(*beside, name), **fields), build(pools=(*beside, "nowhere"), **fields), name, "nowhere"


def _of_scope(household: Household, build: Callable[..., Request], **fields: Any) -> Iterator[Pair]:
    yield from _of_pools(household, build, **fields)
    folder, other = str(household.folders["cellar"]), str(household.folders["cellar"].parent)
    yield build(cwd=folder, **fields), build(cwd=other, **fields), folder, other
    known, unknown = Repository(root=folder), Repository(root=other)
    yield build(repository=known, **fields), build(repository=unknown, **fields), folder, other
    for cwd in ("", str(household.folders["orchard"])):
        agents = [build(cwd=cwd, agent=name, **fields) for name in ("tuba", "flute")]
        yield agents[0], agents[1], "tuba", "flute"


def _of_ids(household: Household, build: Callable[..., Request], **fields: Any) -> Iterator[Pair]:
    for id in (household.ids[name] for name in ("kettle", "moved", "cellar")):
        absent = id.translate(str.maketrans("0123456789abcdef", "fedcba9876543210"))
        for length in (len(id), 12, 8, 6):
            name, other = id[:length], absent[:length]
            yield build(id=name, **fields), build(id=other, **fields), name, other


def _recalls(household: Household) -> Iterator[Pair]:
    for deep in (False, True):
        yield from _of_scope(household, Recall, query="orchard lantern kettle barrel", deep=deep)


def _profiles(household: Household) -> Iterator[Pair]:
    yield from _of_scope(household, Profile)
    cwd = str(household.folders["orchard"])
    for trigger in ("turn", "start"):
        here, nowhere = "aider:aider-1", "aider:nobody"
        delivery: dict[str, Any] = {"delivery": "sticky", "trigger": trigger, "cwd": cwd}
        yield Profile(document=here, **delivery), Profile(document=nowhere, **delivery), here, nowhere


def _lists(household: Household) -> Iterator[Pair]:
    yield from _of_pools(household, List)
    yield from _of_pools(household, List, believed_at=household.before_move)
    for name in ("aider:aider-1", "pi:pi-1"):
        yield List(document=name), List(document="no:one"), name, "no:one"
    for at in ("", household.before_move):
        past: dict[str, Any] = {"believed_at": at}
        yield List(statuses=("hidden",), **past), List(statuses=("hidden",), key="nothing", **past), "", ""


def _exports(household: Household) -> Iterator[Pair]:
    for shareable in (False, True):
        yield from _of_pools(household, Export, shareable=shareable)


def _gets(household: Household) -> Iterator[Pair]:
    yield from _of_ids(household, Get)
    for past in ({"believed_at": household.before_move}, {"as_of": household.before_move}):
        yield from _of_ids(household, Get, **past)


def _maps(household: Household) -> Iterator[Pair]:
    for past in ("", household.before_move):
        yield from _of_pools(household, GetMap, believed_at=past)
        for id in (household.ids[name] for name in ("kettle", "moved", "cellar", "hidden")):
            other = id.translate(str.maketrans("0123456789abcdef", "fedcba9876543210"))
            yield GetMap(around=id, believed_at=past), GetMap(around=other, believed_at=past), id, other
        for name in ("barrel", "samovar", "vault7"):
            yield GetMap(around=name, believed_at=past), GetMap(around="nothing", believed_at=past), name, "nothing"


def _rhythms(household: Household) -> Iterator[Pair]:
    for clock in get_args(Clock):
        yield from _of_pools(household, GetRhythm, clock=clock)


PAIRS: dict[type[Request], Callable[[Household], Iterator[Pair]]] = {
    Recall: _recalls,
    Profile: _profiles,
    Get: _gets,
    List: _lists,
    Why: lambda household: _of_ids(household, Why),
    GetMap: _maps,
    GetRhythm: _rhythms,
    Export: _exports,
    GetContext: lambda household: _of_scope(household, GetContext, days=3650),
    Printed: lambda household: iter(
        [
            (
                Printed(document="aider:aider-1", rev=household.delivered),
                Printed(document="aider:nobody", rev="000000"),
                "aider:aider-1",
                "aider:nobody",
            )
        ]
    ),
}


def test_each_request_that_a_pass_may_send_has_an_access_test_A1() -> None:
    assert PAIRS.keys() == READS


def _replies(household: Household, covered: Request, absent: Request, token: str) -> tuple[bytes, bytes]:
    """Return both replies, from the same state: scores change a little when the keyword index commits."""
    for _ in range(10):
        before, other, after = (household.answer(each, token) for each in (covered, absent, covered))
        if before == after:
            return before, other
    raise AssertionError(f"{covered} never has the same reply twice")


@pytest.mark.parametrize("request_type", PAIRS, ids=[each.__name__ for each in PAIRS])
def test_what_a_pass_does_not_cover_is_like_what_does_not_exist_A1(
    household: Household, request_type: type[Request]
) -> None:
    token, secrets = household.tokens["orchard"], household.secrets()
    for covered, absent, name, other in PAIRS[request_type](household):
        replies = _replies(household, covered, absent, token)
        texts = [
            reply.decode().replace(json.dumps(said)[1:-1], MARK) if said else reply.decode()
            for reply, said in zip(replies, (name, other), strict=True)
        ]
        assert texts[0] == texts[1], (covered, absent)
        assert not [secret for secret in secrets if secret in texts[0]], (covered, texts[0])


@pytest.mark.parametrize("request_type", REQUESTS, ids=NAMES)
@pytest.mark.parametrize("holder", ["expired", "forged", "nonsense"])
def test_a_pass_that_is_not_valid_gets_no_answer_A1(
    household: Household, request_type: type[Request], holder: str
) -> None:
    request = example(request_type, household.tokens.get(holder, "nonsense"))
    with household.daemon.client() as client, pytest.raises(Denied) as denied:
        client.ask(request, object)
    said = denied.value.message + denied.value.hint
    assert not [secret for secret in (*household.secrets(), str(household.daemon.places.config)) if secret in said]


def test_deleting_a_trusted_key_ends_its_passes_at_once_A1(household: Household, withdrawn: tuple[str, Path]) -> None:
    token, path = withdrawn
    requests = [example(each) for each in REQUESTS if each in READS]
    pem = path.read_bytes()
    stranger = Ed25519PrivateKey.generate().public_key()
    other = stranger.public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    for withdraw in (path.unlink, lambda: path.write_bytes(other), lambda: path.rename(path.with_suffix(".old"))):
        path.write_bytes(pem)
        assert b"orchard" in household.answer(List(), token), "it is trusted"
        withdraw()
        for request in requests:
            assert b"no known key signed this pass" in household.answer(request, token), request
    path.with_suffix(".old").unlink()


def test_a_file_that_is_no_key_does_not_end_the_passes_of_others_A1(
    household: Household, withdrawn: tuple[str, Path]
) -> None:
    broken = household.keys / "a.pem"
    broken.write_text("no key")
    try:
        assert b"orchard" in household.answer(List(), withdrawn[0])
        assert str(household.keys).encode() not in household.answer(List(), household.tokens["forged"])
    finally:
        broken.unlink()


def test_revoking_the_pass_of_another_issuer_says_what_to_do_A1(
    household: Household, withdrawn: tuple[str, Path]
) -> None:
    with household.daemon.client() as owner:
        for id in ("foreign", withdrawn[0]):
            with pytest.raises(NotFound) as refused:
                owner.revoke(id)
            assert str(household.keys) in refused.value.hint and "public key" in refused.value.hint
            assert withdrawn[0] not in refused.value.message


def test_a_shareable_export_under_a_pass_has_only_what_both_let_go_A1_A2(household: Household) -> None:
    ids, pools = household.ids, household.pools
    project = {ids["deploys"], ids["stays"]}

    def shareable(holder: str, *names: str) -> tuple[set[str], dict[str, int]]:
        with Client(household.daemon.places, 20_000, household.tokens[holder]) as client:
            page = client.export(names, shareable=True)
        assert not page.next
        documents = {record.record.provenance.source for record in page.records}
        assert {session.document for session in page.sessions} <= documents
        assert {pool.pool for pool in page.pools} == {record.record.pool for record in page.records}
        assert not any(record.record.provenance.quote for record in page.records)
        return {record.record.id for record in page.records}, page.stayed

    with household.daemon.client() as owner:
        page = owner.export(shareable=True)
        everything = {record.record.id for record in page.records}
    assert everything == {*project, ids["cellar"]} and page.stayed["it is not in a project"] >= 2
    assert shareable("all") == (everything, page.stayed), "a pass that covers everything"
    assert shareable("orchard") == (project, {}), "what stayed of other pools is not even counted"
    assert shareable("orchard", pools["orchard"]) == (project, {})
    for name in (pools["cellar"], "cellar", "personal", "nowhere"):
        with pytest.raises(Denied, match="does not cover"):
            shareable("orchard", name)
    found, stayed = shareable("personal")
    assert not found and stayed.keys() == {"it is not in a project"}
    assert shareable("source")[0] == project, "of the sessions of one tool"
    for holder in ("expired", "forged"):
        with pytest.raises(Denied):
            shareable(holder)


# --- a pass is read-only --------------------------------------------------------------------------------------------
def _reads(household: Household) -> Iterator[Request]:
    """Requests that a reader of the orchard would send, in the name of the user's own session."""
    cwd, document = str(household.folders["orchard"]), "aider:aider-1"
    for deep in (False, True):
        yield Recall(query="when does the orchard service deploy", cwd=cwd, document=document, deep=deep)
    yield Recall(query="orchard service", cwd=cwd, include_retired=True)
    for trigger in ("turn", "start", "clear", "compact"):
        yield Profile(cwd=cwd, document=document, delivery="sticky", trigger=trigger)
    yield Printed(document=document, rev=household.delivered)
    yield from (Get(id=household.ids["deploys"]), Why(id=household.ids["deploys"]), List(), Export())
    yield Export(shareable=True)
    yield GetContext(cwd=cwd, days=3650)


def _files(household: Household) -> dict[str, bytes]:
    """The files of the home, apart from the log and the lock files, which a start changes."""
    root = household.daemon.places.data.parent
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name not in ("lock.mdb", "memd.log", "stderr.txt", "lock")
    }


def test_no_request_under_a_pass_changes_the_home_A1(household: Household) -> None:
    daemon = household.daemon
    with daemon.client() as owner:
        injected = owner.injected()
    daemon.terminate()
    before = _files(household)
    assert any(path.startswith("state/injected") for path in before) and "state/given.json" in before
    daemon.start()
    with daemon.client() as owner:
        activity = owner.status().last
    for holder in ("orchard", "personal", "source", "all", "expired", "forged"):
        token = household.tokens[holder]
        for request in (*_reads(household), *(example(each) for each in REQUESTS)):
            household.answer(request, token)
        for pairs in PAIRS.values():
            for request, *_ in pairs(household):
                household.answer(request, token)
    with daemon.client() as owner:
        assert owner.status().last == activity and owner.injected() == injected
    daemon.terminate()
    after = _files(household)
    assert {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)} == set()
    daemon.start()


def test_a_pass_changes_no_delivery_of_a_session_A1(household: Household) -> None:
    document = "codex:delivery"
    with household.daemon.client() as owner, Client(household.daemon.places, 20_000, household.tokens["all"]) as reader:
        first = owner.profile(document=document, delivery="sticky", trigger="start")
        reader.profile(document=document, budget_tokens=60)
        assert reader.ask(Printed(document=document, rev=first.rev), dict[str, bool]) == {"known": False}
        assert owner.profile(document=document, delivery="sticky").due, "nobody printed it yet"
        assert owner.ask(Printed(document=document, rev=first.rev), dict[str, bool]) == {"known": True}
        reader.profile(document=document, delivery="sticky", trigger="clear")
        assert not owner.profile(document=document, delivery="sticky").due, "the session still has it"
        assert reader.recall("orchard").recall == ""


def test_a_spool_does_not_raise_the_holder_of_a_pass_to_the_user_A1(household: Household) -> None:
    origin = Origin(host="pi", session="spooled")
    said = Said(turn="1", at=AT, role="user", text="I prefer the silver spoon.")
    body = msgspec.json.encode(Capture(origin=origin, events=(said,), token=household.tokens["orchard"]))
    spool = household.daemon.places.spool
    spool.mkdir(mode=0o700, exist_ok=True)
    (spool / "shell-999999-1.lines").write_bytes(body + b"\n")
    for _ in range(600):
        if list(spool.glob("*.rejected")):
            break
        household.daemon.answers()
        time.sleep(0.02)
    (rejected,) = spool.glob("*.rejected")
    rejected.unlink()
    with household.daemon.client() as owner:
        assert "pi:spooled" not in [session.document for session in owner.sessions().sessions]


# --- a record that the user moved -----------------------------------------------------------------------------------
def test_a_record_is_out_of_reach_of_the_pool_that_it_left_at_any_time_A1_Q12(household: Household) -> None:
    id, cwd, then = household.ids["moved"], str(household.folders["orchard"]), household.before_move
    with Client(household.daemon.places, 20_000, household.tokens["orchard"]) as reader:
        pasts: list[dict[str, Any]] = [{}, {"believed_at": then}, {"as_of": then}, {"as_of": then, "believed_at": then}]
        for fields in pasts:
            with pytest.raises(NotFound):
                reader.get(id, **fields)
            listed = {record.id for record in reader.list(**fields).records}
            assert id not in listed and (listed or "as_of" in fields)
            for deep in (False, True):
                answer = reader.recall("what is the orchard lantern code", cwd=cwd, deep=deep, **fields)
                assert "vault7" not in msgspec.json.encode(answer).decode()
        assert {record.id for record in reader.list(believed_at=then).records} == {
            household.ids["deploys"],
            household.ids["stays"],
        }
        why = reader.why(household.ids["stays"])
        assert why.lines and not any("vault7" in line.text for line in why.lines)
        assert not any("vault7" in msgspec.json.encode(row).decode() for row in reader.export().records)


def test_a_record_has_no_past_under_the_pass_of_the_pool_that_it_entered_A1_Q12(household: Household) -> None:
    id, then = household.ids["moved"], household.before_move
    with Client(household.daemon.places, 20_000, household.tokens["personal"]) as reader:
        assert reader.get(id).pool == "personal" and id in {record.id for record in reader.list().records}
        with pytest.raises(NotFound):
            reader.get(id, believed_at=then)
        assert id not in {record.id for record in reader.list(believed_at=then).records}
        why = reader.why(id)
        kinds = [change.kind for change in why.changes]
        assert kinds == ["added", "moved"], "it was personal until a stage chose the project"
        assert (why.lines, why.project) == ((), "")
        exported = next(row for row in reader.export().records if row.record.id == id)
        assert [change.kind for change in exported.changes] == kinds
        assert "codex:codex-1" not in {session.document for session in reader.export().sessions}
        (hit,) = reader.recall("what is the orchard lantern code", deep=True).hits[:1]
        assert (hit.record.id, hit.lines) == (id, ())
        assert [state.ended for state in hit.history] == ["", ""], "nothing of the time between"


def test_a_pass_of_both_pools_reads_the_past_A1_Q12(household: Household) -> None:
    id, then = household.ids["moved"], household.before_move
    with household.daemon.client() as owner:
        token = owner.grant("both", pools=[household.pools["orchard"], "personal"], for_s=600).token
    with Client(household.daemon.places, 20_000, token) as reader:
        assert reader.get(id, believed_at=then).pool == household.pools["orchard"]
        assert id in {record.id for record in reader.list(believed_at=then).records}
        assert any("vault7" in line.text for line in reader.why(id).lines)


def test_a_pass_of_a_source_names_only_the_pools_of_that_source_A1(household: Household) -> None:
    token, cellar = household.tokens["source"], household.pools["cellar"]
    with Client(household.daemon.places, 20_000, token) as reader:
        assert {record.pool for record in reader.list().records} == {household.pools["orchard"], "personal"}
        replies = [household.answer(List(pools=(name,)), token) for name in (cellar, "cellar", "nowhere")]
        assert len(set(replies)) == 1 and b"cellar" not in replies[0]
        folders = [household.folders["cellar"], household.folders["cellar"].parent]
        assert [reader.recall("barrel", cwd=str(folder)).scope for folder in folders] == [("personal",)] * 2


def test_a_prefix_counts_only_the_records_that_a_pass_covers_A1(household: Household) -> None:
    """Records of both sides start alike; only one's own make a prefix ambiguous."""
    with household.daemon.client() as owner:
        id = household.ids["deploys"]
        with pytest.raises((NotFound, InvalidRequest)):
            owner.get("")
    with Client(household.daemon.places, 20_000, household.tokens["orchard"]) as reader:
        own = [household.ids["deploys"], household.ids["stays"]]
        length = next(n for n in range(1, len(id)) if own[0][:n] != own[1][:n])
        assert reader.get(id[:length]).id == id
        if length > 1:
            with pytest.raises(NotFound, match="several records"):
                reader.get(id[: length - 1])


# --- turns that support a record ------------------------------------------------------------------------------------
WHY = Decision(action="add", reason="a test")


def test_a_turn_goes_with_the_record_that_it_restates_A1(tmp_path: Path) -> None:
    stores = Stores(tmp_path, real_world(), registry.info())
    text = "The lantern code is seven."
    spans = (Span("pi:1", "first", 0, len(text)),)
    provenance = Provenance(author="user", source="pi:1", trust="user", spans=spans, quote=text, said_at=AT)
    record = Record(id="r1", pool="project/a", kind="note", content=text, description=text, provenance=provenance)
    restated = Evidence(kind="restated", span=Span("pi:1", "second", 0, len(text)), trust="user", at=AT)
    opened = SessionOpened(document="pi:1", origin=Origin(host="pi", session="1"), project="project/a", at=AT)
    operations = [PoolOpened(pool="project/a", title="a"), opened, Added(record=record, decision=WHY)]
    stores.commit([*operations, Merged(id="r1", evidence=restated, decision=WHY)])
    directory, reader = PoolDirectory(stores), Reader("g", "x", ("project/a",), (), 2**60)
    folder_pools = FolderPools(Identity(stores.aliases, real_world().monotonic), stores, directory)
    access = Authorisation(stores, _Known(reader), directory, folder_pools.of)
    handler = Handler("slow", lambda request, caller: request, under_pass=True)

    def readable() -> list[str]:
        caller = access.caller(List(token="a pass"), handler)
        assert caller.reads is not None
        return [turn for turn in ("first", "second", "third") if caller.reads("pi:1", turn)]

    assert readable() == ["first", "second", "third"] and not access.caller(List(), handler).reads
    stores.commit([Moved(ids=("r1",), pool="personal", reason="moved")])
    assert readable() == ["third"]
    assert stores.records.supported("pi:1", "second") == ["r1"]
    stores.close()


@dataclass
class _Known:
    """A verifier whose passes are known to be good."""

    reader: Reader

    def verify(self, token: str) -> Reader:
        return self.reader
