"""The hub's PostgreSQL: installing and checking it, and transactions in which row-level security applies.

Invariants: each transaction has a subject and the role of its purpose, both of which end with it; the gateway's own
role can read nothing; statements are planned for their values, never by a prepared generic plan, which may choose an
index that answers with too few rows.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import resources
from typing import Literal, LiteralString, cast

from psycopg import Connection, Error, OperationalError, ProgrammingError, connect, errors, sql
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool, PoolTimeout

from ...protocol.errors import InvalidRequest, Refused, Unavailable, UnsupportedFormat
from .hub_candidates import know_vectors

OLDEST_POSTGRES = 16
OLDEST_PGVECTOR = (0, 7)
MOST_CONNECTIONS = 32
CONNECTION_WAIT_S = 5.0
GATEWAY_ROLE, IDENTITY_ROLE = "memd_gateway", "memd_identity"
_ROLES = ("memd_reader", "memd_writer", IDENTITY_ROLE)
_INSTALLING = 0x6D656D64
"""The advisory lock that only one installation holds."""

Purpose = Literal["reader", "writer", "identity"]


class HubDatabase:
    """Connections to an installed database; any thread may use it."""

    def __init__(self, url: str, connections: int = 8) -> None:
        """`connections`: most connections of this process. Raises InvalidRequest."""
        if not 1 <= connections <= MOST_CONNECTIONS:
            raise InvalidRequest(f"a gateway has 1 to {MOST_CONNECTIONS} connections to its database")
        self._url = checked_url(url)
        self._pool = ConnectionPool(
            url,
            min_size=1,
            max_size=connections,
            timeout=CONNECTION_WAIT_S,
            kwargs={"prepare_threshold": None, "application_name": "memd hub"},
            configure=know_vectors,
            check=ConnectionPool.check_connection,
            open=False,
        )

    def open(self) -> None:
        """Connect, and check that row-level security holds for this user. Raises Unavailable, Refused,
        UnsupportedFormat."""
        try:
            with connect(self._url) as connection:
                check_user(connection)
                check_schema(connection)
        except OperationalError as error:
            raise _is_away(error) from error
        self._pool.open()

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    @contextmanager
    def transaction(self, purpose: Purpose, subject: str = "", issued_at: int = 0) -> Generator[Connection]:
        """A transaction as a subject, committed at the end. `issued_at`: when the pass was issued, microseconds. Raises
        Unavailable."""
        try:
            with self._pool.connection() as connection, connection.transaction():
                become(connection, purpose, subject, issued_at)
                yield connection
        except (PoolTimeout, OperationalError) as error:
            if isinstance(error, errors.QueryCanceled):
                raise
            raise _is_away(error) from error


def checked_url(url: str) -> str:
    """Return a database's address. Raises InvalidRequest for one that PostgreSQL's client can't read."""
    try:
        conninfo_to_dict(url)
    except ProgrammingError as error:
        hint = "it has the form postgresql://USER:PASSWORD@HOST/NAME"
        raise InvalidRequest("this is not the address of a PostgreSQL database", hint=hint) from error
    return url


def become(connection: Connection, purpose: Purpose, subject: str = "", issued_at: int = 0) -> None:
    """Take a role, and a subject whose pass was issued at a time (microseconds), until the transaction ends."""
    connection.execute(
        "select set_config('role', %s, true), set_config('memd.subject', %s, true),"
        " set_config('memd.issued', %s, true)",
        (f"memd_{purpose}", subject, f"{issued_at / 1_000_000:.6f}"),
    )


def _is_away(error: Error) -> Unavailable:
    detail = str(error).strip().splitlines()
    return Unavailable(
        f"the hub's database does not answer: {detail[0] if detail else type(error).__name__}", hint="try again later"
    )


# --- checks ----------------------------------------------------------------------------------------------------------
def check_user(connection: Connection) -> None:
    """Check that policies apply to the user. Raises Refused."""
    row = connection.execute(
        "select rolname, rolsuper or rolbypassrls from pg_roles where rolname = session_user"
    ).fetchone()
    if row is None or row[1]:
        name = row[0] if row else "this user"
        raise Refused(
            f"{name} may see every row, so the gateway does not use it",
            hint=f"connect as {GATEWAY_ROLE}, which `memd hub install` makes",
        )


def check_schema(connection: Connection) -> None:
    """Check the version of the tables. Raises UnsupportedFormat."""
    try:
        with connection.transaction():
            become(connection, "reader")
            row = connection.execute("select max(version) from memd.migration").fetchone()
    except (errors.UndefinedTable, errors.InsufficientPrivilege, errors.InvalidSchemaName, errors.UndefinedObject):
        row = None
    except errors.InvalidParameterValue:  # the role does not exist
        row = None
    version, newest = (row[0] if row else 0), len(migrations())
    if version != newest:
        what = "has no tables of memd" if not version else f"has version {version} of the tables, not {newest}"
        raise UnsupportedFormat(f"the database {what}", hint="run `memd hub install` with the administrator's URL")
    row = connection.execute("select to_regtype('halfvec') is not null").fetchone()
    if row is None or not row[0]:
        raise UnsupportedFormat(
            "the database has no extension `vector`, or an old one",
            hint="restore it with pgvector 0.7 or later, then run `memd hub install` with the administrator's URL",
        )


def migrations() -> list[str]:
    """Return the SQL of all versions of the tables, in order."""
    folder = resources.files(__name__.rpartition(".")[0]).joinpath("schema")
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return [file.read_text(encoding="utf-8") for file in files]


# --- installing ------------------------------------------------------------------------------------------------------
def install(url: str) -> tuple[int, str]:
    """Make or update roles and tables with the URL of an administrator; return the version, and the password of the
    gateway's role if this made it, "" otherwise. Raises Unavailable, Refused."""
    try:
        with connect(checked_url(url), autocommit=False) as connection:
            connection.execute("select pg_advisory_xact_lock(%s)", (_INSTALLING,))
            _check_server(connection)
            password = _make_roles(connection)
            version = _migrate(connection, migrations())
    except errors.InsufficientPrivilege as error:
        raise Refused(
            f"this user may not install the hub: {error.diag.message_primary}",
            hint="it needs the rights to create roles, schemas and the extension `vector`",
        ) from error
    except OperationalError as error:
        raise _is_away(error) from error
    return version, password


def _check_server(connection: Connection) -> None:
    if connection.info.server_version < OLDEST_POSTGRES * 10_000:
        found = connection.info.server_version // 10_000
        raise Refused(f"this is PostgreSQL {found}", hint=f"the hub needs {OLDEST_POSTGRES} or later")
    row = connection.execute("select from pg_available_extensions where name = 'vector'").fetchone()
    if row is None:
        raise Refused("the extension `vector` is not installed on the server", hint="install pgvector 0.7 or later")
    connection.execute("create extension if not exists vector")
    row = connection.execute("select extversion from pg_extension where extname = 'vector'").fetchone()
    check_pgvector(row[0] if row else "")


def check_pgvector(version: str) -> None:
    """Raise Refused for a version of pgvector that is too old."""
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    if numbers < OLDEST_PGVECTOR:
        oldest = ".".join(map(str, OLDEST_PGVECTOR))
        raise Refused(
            f"the database has pgvector {version}, and the hub needs {oldest} or later",
            hint="install a newer pgvector on the server, then run in the database: alter extension vector update",
        )


def _make_roles(connection: Connection) -> str:
    """Make the roles that are missing; return the password of a new gateway role."""
    present = {row[0] for row in connection.execute("select rolname from pg_roles where rolname like 'memd\\_%'")}
    for role in _ROLES:
        if role not in present:
            connection.execute(sql.SQL("create role {} nologin").format(sql.Identifier(role)))
    owner = connection.execute("select current_user").fetchone()
    assert owner is not None
    # the owner becomes the identity layer for `memd hub grant`
    connection.execute(
        sql.SQL("grant {} to {} with set true").format(sql.Identifier(IDENTITY_ROLE), sql.Identifier(owner[0]))
    )
    if GATEWAY_ROLE in present:
        return ""
    password = os.urandom(24).hex()
    connection.execute(
        sql.SQL("create role {} login noinherit password {}").format(
            sql.Identifier(GATEWAY_ROLE), sql.Literal(password)
        )
    )
    connection.execute(sql.SQL("grant memd_reader, memd_writer to {}").format(sql.Identifier(GATEWAY_ROLE)))
    return password


def _migrate(connection: Connection, scripts: Sequence[str]) -> int:
    connection.execute("create schema if not exists memd")
    connection.execute("create table if not exists memd.migration (version int primary key, at timestamptz not null)")
    connection.execute("grant usage on schema memd to memd_reader")
    connection.execute("grant select on memd.migration to memd_reader")
    row = connection.execute("select coalesce(max(version), 0) from memd.migration").fetchone()
    version: int = row[0] if row else 0
    if version > len(scripts):
        raise UnsupportedFormat(f"the tables have version {version}", hint="install a newer memd")
    for number, script in enumerate(scripts[version:], version + 1):
        connection.execute(cast("LiteralString", script))
        connection.execute("insert into memd.migration values (%s, now())", (number,))
    return len(scripts)
