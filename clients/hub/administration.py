"""What an administrator does at the hub: pools, grants, revocation (A1, A3).

The identity layer of an organisation may do the same by SQL as the role `memd_identity`; memd only enforces it.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from psycopg import Connection, OperationalError, connect, errors

from ...protocol.errors import InvalidRequest, NotFound, Refused, StoreError, Unavailable
from ...protocol.passes import Pass, signed_pass
from ...protocol.shared_lines import is_partition
from .database import become, checked_url

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


class GrantAtHub(NamedTuple):
    """A grant. `until`: when it ends."""

    subject: str
    pool: str
    until: datetime


class HiddenAuthor(NamedTuple):
    """A partition that nobody sees since `at`; without a `pool` if the hub has no lines of it."""

    partition: str
    subject: str
    name: str
    pool: str
    at: datetime


@contextmanager
def identity(url: str) -> Generator[Connection]:
    """A transaction as the identity layer. Raises Unavailable, Refused."""
    try:
        with connect(checked_url(url)) as connection:
            become(connection, "identity")
            yield connection
    except (errors.InsufficientPrivilege, errors.InvalidParameterValue, errors.UndefinedTable) as error:
        raise Refused(
            f"this database user can't grant or revoke: {error.diag.message_primary}",
            hint="use the URL that `memd hub install` ran with, or a user with the role memd_identity",
        ) from error
    except OperationalError as error:
        raise Unavailable(f"the hub's database does not answer: {str(error).splitlines()[0]}") from error


def grant(url: str, subject: str, pools: Sequence[str], until: datetime, *, new_pools: bool) -> datetime:
    """Let a subject use pools until a time; return the database's time, from which on a pass may be issued. Raises
    NotFound for a pool that does not exist, unless `new_pools`."""
    with identity(url) as connection:
        for pool in pools:
            if new_pools:
                try:
                    connection.execute("insert into memd.pool (name) values (%s) on conflict do nothing", (pool,))
                except errors.CheckViolation as error:
                    hint = "use small letters, digits and . _ / -"
                    raise InvalidRequest(f"{pool} can't be the name of a pool", hint=hint) from error
            row = connection.execute("select id from memd.pool where name = %s", (pool,)).fetchone()
            if row is None:
                raise NotFound(f"the hub has no pool {pool}", hint="--new-pool makes it")
            connection.execute(
                "insert into memd.grants values (%s, %s, %s) on conflict (subject, pool)"
                " do update set expires = excluded.expires",
                (subject, row[0], until),
            )
        (now,) = connection.execute("select clock_timestamp()").fetchall()
        return now[0]


def grants(url: str) -> list[GrantAtHub]:
    """Return the grants that have not ended."""
    with identity(url) as connection:
        rows = connection.execute(
            "select g.subject, p.name, g.expires from memd.grants g join memd.pool p on p.id = g.pool"
            " where g.expires > now() order by 1, 2"
        )
        return [GrantAtHub(*row) for row in rows]


def revoke_subject(url: str, subject: str, pools: Sequence[str]) -> int:
    """End the grants of a subject, of all pools if none is named; return how many."""
    with identity(url) as connection:
        ended = connection.execute(
            "delete from memd.grants g using memd.pool p where p.id = g.pool and g.subject = %s"
            " and (%s::text[] = '{}' or p.name = any(%s))",
            (subject, list(pools), list(pools)),
        )
        return ended.rowcount


def withhold(url: str, partition: str, *, back: bool = False) -> bool:
    """Show a partition to nobody, or again; return whether that changed anything. Raises InvalidRequest."""
    if not is_partition(partition):
        raise InvalidRequest(f"{partition} is not a partition", hint="`memd hub status` names the partitions")
    with identity(url) as connection:
        if back:
            return bool(connection.execute("delete from memd.revoked where part = %s", (partition,)).rowcount)
        done = connection.execute("insert into memd.revoked (part) values (%s) on conflict do nothing", (partition,))
        return bool(done.rowcount)


def partitions_of(url: str, subject: str, pools: Sequence[str] = ()) -> list[str]:
    """Return the partitions that a subject was the first to put into pools, into any if none is named."""
    with identity(url) as connection:
        rows = connection.execute(
            "select distinct h.part from memd.head h join memd.pool p on p.id = h.pool"
            " where h.subject = %s and (%s::text[] = '{}' or p.name = any(%s)) order by 1",
            (subject, list(pools), list(pools)),
        )
        return [row[0] for row in rows]


def hidden(url: str) -> list[HiddenAuthor]:
    """Return the partitions that nobody sees."""
    with identity(url) as connection:
        rows = connection.execute(
            "select r.part, coalesce(h.subject, ''), coalesce(h.name, ''), coalesce(p.name, ''), r.at"
            " from memd.revoked r left join memd.head h using (part) left join memd.pool p on p.id = h.pool"
            " order by 2, 4, 1"
        )
        return [HiddenAuthor(*row) for row in rows]


# --- passes ----------------------------------------------------------------------------------------------------------
def public_file(key: Path) -> Path:
    """Return the file of the public key beside a private one."""
    return key.with_suffix(".pub.pem")


def signing_key(file: Path) -> tuple[Ed25519PrivateKey, bool]:
    """Return the key that signs passes, and whether it is new: it is made if the file is missing. Raises StoreError,
    InvalidRequest."""
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        if not file.exists():
            key = Ed25519PrivateKey.generate()
            pem = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as stream:
                stream.write(pem)
            public = key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
            public_file(file).write_bytes(public)
            return key, True
        loaded = form.load_pem_private_key(file.read_bytes(), None)
    except OSError as error:
        raise StoreError(f"{file} can't be used: {error.strerror}", hint="name another file with --key") from error
    except (ValueError, TypeError) as error:
        raise InvalidRequest(f"{file} is not a private key: {error}", hint="name another file with --key") from error
    if not isinstance(loaded, Ed25519PrivateKey):
        raise InvalidRequest(f"{file} is not an Ed25519 key", hint="name another file with --key")
    return loaded, False


def issue(
    key: Ed25519PrivateKey, subject: str, pools: Sequence[str], until: datetime, issued_at: datetime | None = None
) -> str:
    """Return a signed pass. `issued_at`: what `grant` returned, else now."""
    expires_at = int(until.timestamp()) * 1_000_000
    holder = Pass(subject=subject, grant=os.urandom(8).hex(), pools=tuple(pools), expires_at=expires_at)
    return signed_pass(holder, round((issued_at or datetime.now(UTC)).timestamp() * 1_000_000), key)


def until_after(days: float) -> datetime:
    """Return the time so many days from now."""
    return datetime.now(UTC) + timedelta(days=days)
