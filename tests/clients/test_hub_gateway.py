"""The hub's gateway over HTTP and a real PostgreSQL: access, lines, search (H3, A1, A3, T10)."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from itertools import count
from random import Random

import httpx
import numpy as np
import psycopg
import pytest
import trustme
from psycopg.conninfo import make_conninfo

from memd.clients.exchange.hub_client import HubClient, JoinedHub
from memd.clients.hub import administration
from memd.clients.hub.database import GATEWAY_ROLE, HubDatabase, check_pgvector, check_user, install, migrations
from memd.clients.hub.hub_candidates import HubCandidates, as_halfvec, know_vectors, place_of
from memd.clients.hub.partitions_at_hub import granted, put
from memd.protocol.errors import Denied, InvalidRequest, MemdError, Refused, Unavailable, UnsupportedFormat
from memd.protocol.hub import (
    HUB_DIMENSIONS,
    MOST_BYTES,
    HubPools,
    HubPut,
    HubRecall,
    HubSegments,
    LineVector,
    PoolsAtHub,
    RecalledAtHub,
    SegmentsAtHub,
)
from memd.protocol.partition_acceptance import KnownPartition, accept
from memd.protocol.shared_lines import SEGMENT, decode_head, of_repository
from tests.clients.hub_server import Hub, User, database, hub, partitions, postgres, refusal
from tests.daemon.shared_authors import Author

__all__ = ["database", "hub", "postgres"]
MODEL = "test-1"
_numbers = count()


@pytest.fixture
def pool() -> str:
    """A pool of the test's own."""
    return f"pool-{next(_numbers)}"


@pytest.fixture
def ada(hub: Hub, pool: str) -> User:
    """A user of the pool."""
    return hub.user("ada", pool)


@pytest.fixture
def bert(hub: Hub, pool: str) -> User:
    """Another one."""
    return hub.user("bert", pool)


def vector(seed: int) -> bytes:
    """A unit vector."""
    numbers = np.random.default_rng(seed).standard_normal(HUB_DIMENSIONS)
    return (numbers / np.linalg.norm(numbers)).astype("<f2").tobytes()


def read(user: User, pool: str, partition: str) -> list[bytes]:
    """The lines of a partition, page by page."""
    head = next(row for row in user.heads(pool).heads if row.partition == partition)
    lines: list[bytes] = []
    while len(lines) < decode_head(head.head).count:
        first = len(lines) // SEGMENT
        numbers = tuple(range(first, min(first + 4, len(head.hashes))))
        for segment in user.ask(HubSegments(pool=pool, partition=partition, numbers=numbers), SegmentsAtHub).segments:
            lines += segment.data.splitlines()
    return lines


def texts(recalled: RecalledAtHub) -> list[str]:
    return [hit.text for hit in recalled.hits]


def recalled(user: User, query: str, **more: object) -> RecalledAtHub:
    return user.ask(HubRecall(query=query, **more), RecalledAtHub)  # type: ignore[arg-type]


# --- lines -----------------------------------------------------------------------------------------------------------
def test_a_partition_is_read_as_it_was_put_H3(pool: str, ada: User, bert: User) -> None:
    author = ada.author(1, pool, *(f"The orchard has tree number {n}." for n in range(SEGMENT + 3)))
    assert not ada.put(pool, author).problem
    [head] = bert.heads(pool).heads
    assert (head.partition, head.head, head.hashes) == (author.partition, author.head(), author.hashes())
    assert read(bert, pool, author.partition) == author.lines
    marks = {of_repository("", ada.mark(pool).remote)}
    assert not accept(KnownPartition(), decode_head(head.head), head.hashes, author.segments(), marks).left


def test_a_put_sends_only_what_is_new_and_says_what_it_lacks_H3(pool: str, ada: User) -> None:
    author = ada.author(2, pool, *(f"Row {n} is pruned in March." for n in range(SEGMENT + 1)))
    ada.put(pool, author)
    author.add("Row 300 is pruned in April.")
    assert ada.put(pool, author, segments=()).wanted == (1,)
    assert not ada.put(pool, author, segments=author.segments(1)).wanted
    assert read(ada, pool, author.partition) == author.lines


@pytest.mark.parametrize("kind", ["older", "changed", "forged", "appended", "another pool", "unsigned segment"])
def test_a_hub_refuses_what_a_daemon_would_refuse_H3(hub: Hub, pool: str, ada: User, kind: str) -> None:
    author = ada.author(3, pool, "The press starts at six.", "The press stops at nine.")
    ada.put(pool, author)
    before = read(ada, pool, author.partition)
    more: dict[str, object] = {}
    if kind == "older":
        author.lines.pop()
    elif kind == "changed":
        author.lines[0] = author.lines[0].replace(b"six", b"two")
    elif kind == "forged":
        more["head"] = author.head().replace(b"author 3", b"author 4")
    elif kind == "appended":
        more["segments"] = tuple(type(segment)(segment.number, segment.data + b"{}\n") for segment in author.segments())
    elif kind == "another pool":
        hub.user("ada", f"{pool}-other")
        author.mark = User(hub, "ada", hub.pass_of("ada")).mark(f"{pool}-other")
        author.add("This is for another pool.")
    else:
        author.add("The press is oiled.")
        more["segments"] = ada.author(3, pool, "The press starts at six.", "The press stops at nine.", "No.").segments()
    assert ada.put(pool, author, **more).problem
    assert read(ada, pool, author.partition) == before


def test_what_is_signed_for_one_pool_can_not_be_put_into_a_wider_one_A2(hub: Hub, pool: str, ada: User) -> None:
    wide = hub.user("ada", f"{pool}-org")
    author = ada.author(4, pool, "The team's plan.")
    assert "another repository" in wide.put(f"{pool}-org", author).problem
    assert not wide.heads(f"{pool}-org").heads


def test_forgotten_words_are_in_no_table_of_the_hub_T10(hub: Hub, pool: str, ada: User) -> None:
    author = ada.author(5, pool, "The quince password is marmalade.", "The pears are ripe.")
    ada.put(pool, author, model=MODEL, vectors=(LineVector(0, vector(1)), LineVector(1, vector(2))))
    author.forget(0)
    assert not ada.put(pool, author).problem
    assert read(ada, pool, author.partition) == author.lines
    for table in ("op", "rec", "head", "inv"):
        rows = hub.rows(
            f"select t::text from memd.{table} t where pool = (select id from memd.pool where name = %s)", pool
        )
        assert not any(b"marmalade" in str(row).encode() or b"6d61726d" in str(row).encode() for row in rows), table
    assert texts(recalled(ada, "pears marmalade", pools=(pool,))) == ["The pears are ripe."]


def test_a_gone_line_does_not_come_back_T10(pool: str, ada: User) -> None:
    author = ada.author(6, pool, "The quince is bitter.", "The pears are ripe.")
    ada.put(pool, author)
    words = author.lines[0]
    author.forget(0)
    ada.put(pool, author)
    author.lines[0] = words
    author.epoch += 1
    assert "came back" in ada.put(pool, author).problem


def test_a_transaction_that_commits_late_is_missed_by_nobody_H3(
    hub: Hub, pool: str, ada: User, bert: User, database: HubDatabase
) -> None:
    early, late = ada.author(7, pool, "This commits first."), ada.author(8, pool, "This began first.")
    with database.transaction("writer", "ada") as connection:
        place = granted(connection, [pool], 2**62)[pool]
        request = HubPut(pool=pool, head=late.head(), hashes=late.hashes(), segments=late.segments())
        assert not put(connection, place, "ada", request).problem
        ada.put(pool, early)
        assert partitions(bert.heads(pool)) == [early.partition]
    assert set(partitions(bert.heads(pool))) == {early.partition, late.partition}


def test_puts_in_any_order_and_at_once_lose_nothing_H3(pool: str, ada: User) -> None:
    authors = [ada.author(100 + n, pool) for n in range(6)]
    random, problems = Random(1), list[str]()

    def write(author: Author) -> None:
        for number in range(8):
            author.add(f"Line {number} of {author.name}.")
            problems.extend(filter(None, [ada.put(pool, author).problem]))

    threads = [threading.Thread(target=write, args=(author,)) for author in random.sample(authors, len(authors))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert {author.partition: read(ada, pool, author.partition) for author in authors} == {
        author.partition: author.lines for author in authors
    }


def test_a_gateway_that_is_killed_between_two_pages_costs_nothing_H3(hub: Hub, pool: str, ada: User) -> None:
    author = ada.author(9, pool, *(f"Tree {n} bears apples." for n in range(3 * SEGMENT)))
    ada.put(pool, author)
    first = hub.serve()
    page = ada.ask(HubSegments(pool=pool, partition=author.partition, numbers=(0,)), SegmentsAtHub)
    first.kill()
    assert refusal(lambda: ada.heads(pool)).code == "remote_unreachable"
    hub.gateways.remove(first)
    rest = ada.ask(HubSegments(pool=pool, partition=author.partition, numbers=(1, 2)), SegmentsAtHub)
    assert (*page.segments, *rest.segments) == author.segments()


# --- access ----------------------------------------------------------------------------------------------------------
def test_without_a_valid_pass_nothing_is_answered_A1(hub: Hub, pool: str, ada: User) -> None:
    url = hub.gateways[-1].url
    for header in ({}, {"authorization": "Bearer nothing"}, {"authorization": "Basic YTpi"}):
        reply = httpx.post(f"{url}/v1/pools", content=b"\x80", headers=header)
        assert reply.status_code == 403, header
    expired = User(hub, "ada", hub.pass_of("ada", pool, seconds=-5))
    assert "expired" in refusal(lambda: expired.heads(pool)).message
    other = administration.signing_key(hub.folder / f"stranger-{pool}.key")[0]
    stranger = hub.folder / f"stranger-{pool}.pass"
    stranger.write_text(administration.issue(other, "ada", [pool], administration.until_after(1)))
    assert isinstance(refusal(lambda: User(hub, "ada", stranger).heads(pool)), Denied)


def test_a_pool_is_read_only_if_the_pass_and_the_grant_cover_it_A1(hub: Hub, pool: str, ada: User) -> None:
    ada.put(pool, ada.author(10, pool, "The apple ledger lies in SQLite."))
    hub.grant("carl", f"{pool}-carl")
    passes = {
        "granted, not in the pass": User(hub, "ada", hub.pass_of("ada", f"{pool}-carl")),
        "in the pass, not granted": User(hub, "carl", hub.pass_of("carl", pool)),
        "neither": User(hub, "dora", hub.pass_of("dora")),
    }
    for name, user in passes.items():
        told = refusal(lambda user=user: user.heads(pool)).message.replace(user.subject, "X").replace(pool, "P")
        missing = refusal(lambda user=user: user.heads("no-such")).message.replace(user.subject, "X")
        assert told == missing.replace("no-such", "P"), name
        assert not recalled(user, "apple ledger").hits, name


def test_a_revoked_subject_reads_nothing_from_the_next_request_on_A1(
    hub: Hub, pool: str, ada: User, bert: User
) -> None:
    ada.put(pool, ada.author(11, pool, "The cellar door sticks."))
    assert texts(recalled(bert, "cellar door"))
    assert administration.revoke_subject(hub.admin, "bert", [pool]) == 1
    assert isinstance(refusal(lambda: bert.heads(pool)), Denied)
    assert not texts(recalled(bert, "cellar door"))
    assert texts(recalled(ada, "cellar door", pools=(pool,)))


def test_a_new_grant_revives_no_pass_of_before_a_revocation_A1(hub: Hub, pool: str) -> None:
    other = f"{pool}-other"
    stolen = User(hub, "fay", hub.grant("fay", pool, other))
    anywhere = User(hub, "fay", hub.pass_of("fay"))
    assert administration.revoke_subject(hub.admin, "fay", [pool]) == 1
    until = administration.until_after(1)
    now = administration.grant(hub.admin, "fay", [pool], until, new_pools=False)
    fresh_file = hub.folder / f"fresh-{pool}.pass"
    fresh_file.write_text(administration.issue(hub.key, "fay", [pool], until, now))
    fresh = User(hub, "fay", fresh_file)
    assert fresh.heads(pool).subject == "fay"
    for user in (stolen, anywhere):
        assert isinstance(refusal(lambda user=user: user.heads(pool)), Denied)
        assert user.heads(other).subject == "fay", "the revocation was for one pool"
    # an identity layer deletes all grants by SQL: passes of before open nothing, also no pool that is granted later
    with administration.identity(hub.admin) as connection:
        connection.execute("delete from memd.grants where subject = 'fay'")
    hub.grant("fay", pool, other, f"{pool}-third")
    for user in (stolen, anywhere, fresh):
        assert user.ask(HubPools(), PoolsAtHub).pools == ()
    assert len(User(hub, "fay", hub.pass_of("fay")).ask(HubPools(), PoolsAtHub).pools) == 3


def test_a_grant_ends_by_itself_A1(hub: Hub, pool: str, ada: User) -> None:
    short = User(hub, "eve", hub.pass_of("eve", pool))
    administration.grant(hub.admin, "eve", [pool], administration.until_after(-1), new_pools=False)
    assert isinstance(refusal(lambda: short.heads(pool)), Denied)


def test_one_row_hides_an_author_everywhere_and_brings_back_what_he_retracted_A3(
    hub: Hub, pool: str, ada: User, bert: User
) -> None:
    author = ada.author(12, pool, "The barn burns oil.", "The barn has two doors.")
    ada.put(pool, author)
    liar = bert.author(13, pool, "The barn burns coal.")
    liar.invalidate(f"{author.partition}/0")
    bert.put(pool, liar)
    disputed = {hit.text: hit.disputed for hit in recalled(ada, "barn", pools=(pool,)).hits}
    assert disputed == {"The barn burns oil.": True, "The barn has two doors.": False, "The barn burns coal.": False}
    assert administration.partitions_of(hub.admin, "bert")
    administration.withhold(hub.admin, liar.partition)
    shown = {hit.text: hit.disputed for hit in recalled(ada, "barn", pools=(pool,)).hits}
    assert shown == {"The barn burns oil.": False, "The barn has two doors.": False}
    listed = ada.heads(pool)
    assert partitions(listed) == [author.partition]
    assert liar.partition in listed.withheld
    request = HubSegments(pool=pool, partition=liar.partition, numbers=(0,))
    assert refusal(lambda: ada.ask(request, SegmentsAtHub)).code == "not_found"
    liar.add("And more.")
    assert isinstance(refusal(lambda: bert.put(pool, liar)), Denied)
    administration.withhold(hub.admin, liar.partition, back=True)
    assert len(recalled(ada, "barn", pools=(pool,)).hits) == 3


def test_a_pool_tells_the_hidden_authors_of_no_other_pool_A1(hub: Hub, pool: str, ada: User) -> None:
    other = hub.user("gus", f"{pool}-other")
    hidden, elsewhere = ada.author(21, pool, "The loft is dry."), other.author(22, f"{pool}-other", "The loft is wet.")
    ada.put(pool, hidden)
    other.put(f"{pool}-other", elsewhere)
    for author in (hidden, elsewhere):
        administration.withhold(hub.admin, author.partition)
    assert ada.heads(pool).withheld == (hidden.partition,)
    assert other.heads(f"{pool}-other").withheld == (elsewhere.partition,)
    told = {row.partition: (row.subject, row.pool) for row in administration.hidden(hub.admin)}
    assert told[hidden.partition] == ("ada", pool) and told[elsewhere.partition] == ("gus", f"{pool}-other")


def test_the_lines_of_a_subject_are_found_in_one_pool_or_in_all_A3(hub: Hub, pool: str) -> None:
    user = hub.user("hal", pool, f"{pool}-other")
    here, there = user.author(23, pool, "The yard is swept."), user.author(24, f"{pool}-other", "The yard is paved.")
    user.put(pool, here)
    user.put(f"{pool}-other", there)
    assert administration.partitions_of(hub.admin, "hal", [pool]) == [here.partition]
    assert set(administration.partitions_of(hub.admin, "hal")) == {here.partition, there.partition}


def test_row_level_security_holds_for_a_question_that_names_no_pool_A1(
    hub: Hub, pool: str, ada: User, database: HubDatabase
) -> None:
    ada.put(pool, ada.author(14, pool, "The scales weigh in stone."))
    tables = ("pool", "head", "op", "rec", "inv")
    with database.transaction("reader", "nobody") as connection:
        assert [connection.execute(f"select count(*) from memd.{t}".encode()).fetchone() for t in tables] == [(0,)] * 5
    with database.transaction("reader", "ada") as connection:
        assert connection.execute("select count(*) from memd.op").fetchone() != (0,)
    for forbidden in (
        "select * from memd.grants",
        "update memd.op set line = ''",
        "delete from memd.op",
        "insert into memd.revoked (part) values ('x')",
        "select * from memd.op_0",
        "insert into memd.grants select 'nobody', id, now() + interval '1 day' from memd.pool",
    ):
        for purpose in ("reader", "writer"):
            with (
                pytest.raises(psycopg.errors.InsufficientPrivilege),
                database.transaction(purpose, "ada") as connection,
            ):
                connection.execute(forbidden.encode())


def test_a_search_that_names_the_pool_of_others_reads_no_row_and_no_statistic_A1(
    hub: Hub, pool: str, bert: User, database: HubDatabase
) -> None:
    hub.user("ada", f"{pool}-other")
    author = bert.author(91, pool, "The anvil rings.", "The anvil is cold.")
    bert.put(pool, author, model=MODEL, vectors=(LineVector(0, vector(1)),))
    with database.transaction("reader", "bert") as connection:
        number = granted(connection, [pool], 2**62)[pool].number
    with psycopg.connect(hub.admin, autocommit=True) as connection:
        connection.execute("analyze")
    statistics = "select count(*) from pg_stats where schemaname = 'memd' and tablename ~ '^(rec|op|head|inv)'"
    assert hub.rows(statistics) != [(0,)]

    def found(subject: str) -> int:
        question = np.frombuffer(vector(1), "<f2").astype("<f4").tobytes()
        with database.transaction("reader", subject) as connection:
            assert connection.execute(statistics).fetchone() == (0,)
            return len(HubCandidates(connection, {"p": number}, MODEL).search(["anvil"], question, ["p"], 9))

    assert [found(subject) for subject in ("bert", "ada", "nobody", "")] == [2, 0, 0, 0]
    administration.withhold(hub.admin, author.partition)
    assert found("bert") == 0
    administration.withhold(hub.admin, author.partition, back=True)
    assert found("bert") == 2
    administration.revoke_subject(hub.admin, "bert", [pool])
    assert found("bert") == 0


def test_no_function_with_the_rights_of_the_owner_reads_words_or_vectors_A1(hub: Hub) -> None:
    functions = hub.rows("select proname, prosrc from pg_proc where prosecdef and pronamespace = 'memd'::regnamespace")
    assert len(functions) > 3
    assert not [name for name, source in functions if "words" in str(source) or "vec" in str(source)]


@pytest.mark.parametrize("order", ["after it", "before it", "before it, in an earlier put"])
def test_what_an_author_retracts_is_found_again_once_they_forget_the_retraction_H3(
    pool: str, ada: User, order: str
) -> None:
    author = ada.author(93, pool, "The ladder has nine rungs.")
    vectors = tuple(LineVector(n, vector(n)) for n in range(4))
    if order == "after it":
        author.add("The ladder is oak.")
        place = 2
        author.invalidate(f"{author.partition}/1")
    else:
        place = 1
        author.invalidate(f"{author.partition}/2")
        if order != "before it":
            ada.put(pool, author, model=MODEL, vectors=vectors[:1])
        author.add("The ladder is oak.")
    assert not ada.put(pool, author, model=MODEL, vectors=vectors).problem

    def found(query: str) -> set[str]:
        return set(texts(recalled(ada, query, pools=(pool,), model=MODEL, vector=vector(1))))

    assert found("ladder") == found("nothing of it") == {"The ladder has nine rungs."}
    author.forget(place)
    assert not ada.put(pool, author).problem
    assert found("ladder") == {"The ladder has nine rungs.", "The ladder is oak."}


def test_a_line_can_be_replaced_by_nothing_but_its_mark_A2(pool: str, ada: User, database: HubDatabase) -> None:
    author = ada.author(15, pool, "The fence is green.")
    ada.put(pool, author)
    with pytest.raises(psycopg.errors.InsufficientPrivilege), database.transaction("writer", "ada") as connection:
        number = granted(connection, [pool], 2**62)[pool].number
        connection.execute(
            "select memd.redact(%s, %s, %s, %s)", (number, author.partition, [0], [b"The fence is red."])
        )


def test_the_gateway_does_not_run_as_a_user_whom_no_policy_holds_A1(hub: Hub) -> None:
    with psycopg.connect(hub.admin) as connection, pytest.raises(Refused):
        check_user(connection)
    with psycopg.connect(hub.gateway_url) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("select * from memd.rec")


def test_a_database_without_tables_or_pgvector_is_told_with_what_to_do_H3(
    hub: Hub, postgres: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("create database hub_empty")
    admin = make_conninfo(postgres, dbname="hub_empty")
    gateway = make_conninfo(admin, user=GATEWAY_ROLE)
    with pytest.raises(UnsupportedFormat, match="no tables of memd") as error:
        HubDatabase(gateway).open()
    assert "memd hub install" in error.value.hint
    assert install(admin)[0] == len(migrations()) == install(admin)[0]
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute("drop extension vector cascade")
    with pytest.raises(UnsupportedFormat, match="no extension") as error:
        HubDatabase(gateway).open()
    assert "pgvector" in error.value.hint


def test_an_older_database_gets_what_is_missing_A1(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("create database hub_older")
    admin = make_conninfo(postgres, dbname="hub_older")
    monkeypatch.setattr("memd.clients.hub.database.migrations", lambda: migrations()[:1])
    assert install(admin)[0] == 1
    monkeypatch.undo()
    with pytest.raises(UnsupportedFormat, match=f"version 1 of the tables, not {len(migrations())}"):
        HubDatabase(make_conninfo(admin, user=GATEWAY_ROLE)).open()
    assert install(admin)[0] == len(migrations())


def test_a_hub_of_version_two_is_searched_after_the_update_H3(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("create database hub_version_two")
    admin = make_conninfo(postgres, dbname="hub_version_two")
    monkeypatch.setattr("memd.clients.hub.database.migrations", lambda: migrations()[:2])
    assert install(admin)[0] == 2
    monkeypatch.undo()
    administration.grant(admin, "ada", ["p"], administration.until_after(1), new_pools=True)
    lines = ("The ladder is oak.", "The ladder has nine rungs.", "The ladder is ash.")
    with psycopg.connect(admin) as connection:  # as version two wrote them
        know_vectors(connection)
        for part in ("a" * 24, "b" * 24):
            for n, text in enumerate(lines):
                half = as_halfvec(vector(n))
                connection.execute(
                    "insert into memd.rec (pool, part, n, text, type, key, said, words, model, vec) values"
                    " (1, %s, %s, %s, 'note', '', '', to_tsvector('simple', %s) || to_tsvector('english', %s), %s, %b)",
                    (part, n, text, text, text, MODEL, half),
                )
        connection.execute("insert into memd.inv values (1, %s, 3, %s, 0)", ("a" * 24, "a" * 24))  # their own line
        connection.execute("insert into memd.inv values (1, %s, 4, %s, 1)", ("a" * 24, "b" * 24))  # that of another
    assert install(admin)[0] == len(migrations())

    def found(terms: list[str]) -> set[str]:
        question = np.frombuffer(vector(0), "<f2").astype("<f4").tobytes()
        with database.transaction("reader", "ada") as connection:
            candidates = HubCandidates(connection, {"p": 1}, MODEL).search(terms, question, ["p"], 9)
        return {f"{place.part[0]}{place.n}" for place in (place_of(candidate.id) for candidate in candidates)}

    database = HubDatabase(make_conninfo(admin, user=GATEWAY_ROLE), 1)
    database.open()
    assert found(["the", "oak", "ladder"]) == found([]) == {"a1", "a2", "b0", "b1", "b2"}
    with database.transaction("writer", "ada") as connection:  # the author forgets the retraction
        connection.execute("select memd.redact(1, %s, %s, %s)", ("a" * 24, [3], [b'{"gone":"3"}']))
    assert "a0" in found(["oak"])
    database.close()


@pytest.mark.parametrize(("version", "is_enough"), [("0.6.2", False), ("0.7.0", True), ("0.10", True), ("1.0", True)])
def test_an_old_pgvector_is_refused_H3(version: str, is_enough: bool) -> None:
    if is_enough:
        check_pgvector(version)
        return
    with pytest.raises(Refused, match="or later"):
        check_pgvector(version)


def test_a_certificate_that_is_not_trusted_or_is_none_says_what_to_do_H3(
    hub: Hub, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    certificate, key, trusted = (hub.folder / name for name in ("tls.pem", "tls.key", "ca.pem"))
    issued.cert_chain_pems[0].write_to_path(certificate)
    issued.private_key_pem.write_to_path(key)
    authority.cert_pem.write_to_path(trusted)
    gateway = hub.serve("--certificate", str(certificate), "--private-key", str(key))
    hub.gateways.remove(gateway)
    at = JoinedHub(url=gateway.url.replace("http:", "https:"), pass_file=str(ada.pass_file))
    with HubClient(at) as client:
        error = refusal(lambda: client.ask(HubPools(), PoolsAtHub))
    assert "not trusted" in error.message and "SSL_CERT_FILE" in error.hint
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    with HubClient(at) as client:
        assert client.ask(HubPools(), PoolsAtHub).subject == "ada"
    gateway.stop()
    with pytest.raises(AssertionError, match="can't be used for TLS"):
        hub.serve("--certificate", str(hub.key_file), "--private-key", str(key))


def test_an_address_that_is_none_is_told_before_anything_is_tried_H3() -> None:
    for address in ("nonsense", "postgresql://u@h/d?nothing=1", "http://hub.example.org"):
        with pytest.raises(InvalidRequest):
            install(address)
        with pytest.raises(InvalidRequest):
            HubDatabase(address)
    away = HubDatabase("postgresql://nobody@127.0.0.1:1/nothing")
    with pytest.raises(Unavailable, match="does not answer"):
        away.open()


# --- bad input -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("body", [b"", b"\xff", b"[]", b"\x81\xa4pool\x01", b"\x91" * 5000, b"\x80"])
def test_a_body_that_is_no_request_is_told_H3(hub: Hub, ada: User, body: bytes) -> None:
    headers = {"authorization": f"Bearer {ada.pass_file.read_text()}"}
    reply = httpx.post(f"{hub.gateways[-1].url}/v1/heads", content=body, headers=headers)
    assert reply.status_code == 400


def test_a_body_that_is_too_large_is_refused_before_it_is_read_H3(hub: Hub, ada: User) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(MOST_BYTES // 2**20 + 2):
            yield bytes(2**20)

    headers = {"authorization": f"Bearer {ada.pass_file.read_text()}"}
    try:
        reply = httpx.post(f"{hub.gateways[-1].url}/v1/put", content=endless(), headers=headers, timeout=60)
        assert reply.status_code == 413
    except httpx.TransportError:
        pass  # the gateway closed while more was sent
    assert ada.heads(ada.heads(next(iter(hub_pools(ada)))).pool.name)


def test_no_body_is_read_without_a_pass_or_with_a_length_that_is_too_large_A1(hub: Hub, ada: User) -> None:
    address = ("127.0.0.1", hub.gateways[-1].port)
    cases = {
        "nothing": (2**20, b"403"),
        ada.pass_file.read_text(): (MOST_BYTES + 1, b"413"),
    }
    for token, (size, status) in cases.items():
        head = f"POST /v1/put HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {token}\r\ncontent-length: {size}\r\n\r\n"
        with socket.create_connection(address, timeout=30) as connection:
            connection.sendall(head.encode())  # and no byte of the body
            assert connection.recv(100).split()[1] == status


def hub_pools(user: User) -> list[str]:
    return [row.name for row in user.ask(HubPools(), PoolsAtHub).pools]


def test_words_that_postgres_can_not_store_break_nothing_H3(pool: str, ada: User) -> None:
    odd = [
        "Zero \0 byte.",
        "'; drop table memd.op; --",
        "\u202eright to left",
        "한국어 문장입니다.",
        "A" * 3000,
        "& | ! : *",
    ]
    author = ada.author(16, pool, *odd)
    assert not ada.put(pool, author).problem
    for words in odd:
        assert isinstance(recalled(ada, words[:500], pools=(pool,)).hits, tuple)
    assert read(ada, pool, author.partition) == author.lines


def test_more_users_than_connections_are_all_answered_H3(hub: Hub, pool: str, ada: User) -> None:
    gateway = hub.serve("--connections", "2")
    ada.put(pool, ada.author(17, pool, "The gate is shut at night."))
    answers: list[object] = []

    def ask() -> None:
        try:
            answers.append(len(recalled(ada, "gate night", pools=(pool,)).hits))
        except MemdError as error:
            answers.append(error)

    threads = [threading.Thread(target=ask) for _ in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gateway.stop()
    hub.gateways.remove(gateway)
    assert answers == [1] * 24


# --- search ----------------------------------------------------------------------------------------------------------
def test_every_subject_gets_all_rows_that_are_there_and_none_else_H3(hub: Hub, pool: str) -> None:
    random = Random(7)
    names = [f"{pool}-{n}" for n in range(12)]
    rows: dict[str, list[str]] = {}
    for number, name in enumerate(names):
        user = hub.user("filler", name)
        size = random.choice([1, 3, 40])
        author = user.author(200 + number, name, *(f"Basket {n} of {name} is full." for n in range(size)))
        vectors = tuple(LineVector(n, vector(1000 * number + n)) for n in range(size))
        assert not user.put(name, author, model=MODEL, vectors=vectors).problem
        rows[name] = [f"Basket {n} of {name} is full." for n in range(size)]
    for number in range(20):
        mine = random.sample(names, random.randint(1, 6))
        user = hub.user(f"{pool}-subject-{number}", *mine)
        answer = recalled(user, "something else", model=MODEL, vector=vector(number), limit=50)
        expected = [text for name in mine for text in rows[name]]
        assert not answer.late
        assert len(answer.hits) == min(50, len(expected))
        assert {hit.text for hit in answer.hits} <= set(expected)


def test_words_and_sense_are_found_in_any_language_H3(pool: str, ada: User) -> None:
    said = ["We deploy on Tuesdays.", "Wir liefern dienstags aus.", "Nous déployons le mardi.", "Деплой по вторникам."]
    ada.put(pool, ada.author(18, pool, *said), model=MODEL, vectors=tuple(LineVector(n, vector(n)) for n in range(4)))
    assert texts(recalled(ada, "deploying", pools=(pool,)))[0] == said[0]
    assert texts(recalled(ada, "mardi", pools=(pool,)))[0] == said[2]
    assert texts(recalled(ada, "деплой", pools=(pool,)))[0] == said[3]
    near = recalled(ada, "zzz", pools=(pool,), model=MODEL, vector=vector(1), limit=1)
    assert texts(near) == [said[1]]
    assert near.hits[0].similarity == pytest.approx(1.0, abs=0.01)
    assert not recalled(ada, "zzz", pools=(pool,), model="another", vector=vector(1)).hits
    assert not heads_of_other(ada, pool)


def heads_of_other(user: User, pool: str) -> list[str]:
    return [row for row in partitions(user.heads(pool)) if len(row) != 24]


def test_a_search_that_takes_too_long_is_left_out_and_told_H3(
    hub: Hub, pool: str, ada: User, monkeypatch: pytest.MonkeyPatch, database: HubDatabase
) -> None:
    from memd.clients.hub import gateway
    from memd.protocol.passes import Pass

    ada.put(pool, ada.author(19, pool, "The well is deep."))
    monkeypatch.setattr(gateway, "DEADLINE_MS", 1)
    monkeypatch.setattr("memd.clients.hub.hub_candidates._CANDIDATES", "select 1, 'x', 1, 1.0, 1.0 from pg_sleep(5)")
    with database.transaction("reader", "ada") as connection:
        asker = gateway.Asker(Pass(subject="ada", grant="1"), connection, granted(connection, [pool], 2**62))
        answer = gateway._recall(asker, HubRecall(query="well", pools=(pool,)))
    assert (answer.late, answer.hits) == ((pool,), ())
