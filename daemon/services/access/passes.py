"""The keys of access passes on this machine, and the passes that it verified (A1).

Invariants: memd trusts any key in this home while its file is there unchanged; memd creates the home's own key at its
first use, readable only by the owner; PyJWT and cryptography are imported only when a pass is signed or verified.
"""

from __future__ import annotations

import importlib
import logging
import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ....protocol.errors import Denied, InvalidRequest
from ....protocol.passes import NAME, Pass, check_expiry, pass_and_signer, public_key, signed_pass
from ..service import Reader

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

log = logging.getLogger("memd.access")
VERIFIED = 64
"""Most passes in the cache of verified signatures; verifying one takes half a millisecond."""


class Verifier(Protocol):
    """The port that verifies a pass."""

    def verify(self, token: str) -> Reader:
        """Return the holder of a pass. Raises Denied."""
        ...


class _KeyFile(NamedTuple):
    """The file of a trusted key, and its content when memd read the key."""

    path: Path
    content: bytes


class _Verified(NamedTuple):
    """A verified pass, with the file of the key that signed it."""

    pass_: Pass
    file: _KeyFile


class Passes:
    """Signs with the home's own key; verifies with it and with the public keys in a folder."""

    def __init__(self, own: Path, trusted: Path, now: Callable[[], int]) -> None:
        """`own`: the file of the private key; `trusted`: a folder of public keys, `*.pem`; `now`: microseconds."""
        self._own, self.trusted, self._now = own, trusted, now
        self._known: dict[str, _Verified] = {}

    def prepare(self) -> None:
        """Load the libraries (0.1 s) in a thread if this home has signed passes before."""
        if self._own.exists():
            threading.Thread(target=importlib.import_module, args=("jwt",), name="passes", daemon=True).start()

    def sign(self, reader: Reader) -> str:
        """Sign a pass for a reader. Raises Denied if the key of this home is unusable."""
        pass_ = Pass(
            subject=reader.subject,
            grant=reader.grant,
            pools=reader.pools,
            sources=reader.sources,
            expires_at=reader.expires_at,
        )
        return signed_pass(pass_, self._now(), self._private_key())

    def verify(self, token: str) -> Reader:
        """Return the holder of a pass with a good signature, for memd, that has not expired. Raises Denied."""
        verified = self._known.get(token)
        if verified is None or _content(verified.file.path) != verified.file.content:  # deleted or changed: no trust
            self._known.pop(token, None)
            verified = _Verified(*pass_and_signer(token, self._public_keys(), self._now()))
            if len(self._known) >= VERIFIED:
                self._known.clear()
            self._known[token] = verified
        pass_ = verified.pass_
        check_expiry(pass_, self._now())
        return Reader(pass_.grant, pass_.subject, pass_.pools, pass_.sources, pass_.expires_at)

    def _public_keys(self) -> Iterator[tuple[_KeyFile, Ed25519PublicKey]]:
        """Yield the trusted keys with their files; log a file that is not a public key, for the user alone."""
        if self._own.exists():
            content = _content(self._own)
            yield _KeyFile(self._own, content), self._private_key().public_key()
        for path in sorted(self.trusted.glob("*.pem")):
            content = _content(path)
            key = public_key(content)
            if key is None:
                log.warning("skipped a file in pass_keys that is not a public key: %s", path.name)
                continue
            yield _KeyFile(path, content), key

    def _private_key(self) -> Ed25519PrivateKey:
        """Return this home's own key, created if missing. Raises Denied if other users can read it."""
        from cryptography.hazmat.primitives import serialization as form
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        if not self._own.exists():
            pem = Ed25519PrivateKey.generate().private_bytes(
                form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()
            )
            descriptor = os.open(self._own, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(pem)
        if stat.S_IMODE(self._own.stat().st_mode) & 0o077:
            raise Denied(
                f"other users can read {self._own}",
                hint=f"delete it, because others may have signed passes with it; {NAME}",
            )
        try:
            key = form.load_pem_private_key(self._own.read_bytes(), None)
        except (OSError, ValueError) as error:
            raise Denied(f"{self._own} can't be read: {error}", hint="remove it; `memd grant` makes another") from error
        if not isinstance(key, Ed25519PrivateKey):
            raise Denied(f"{self._own} is not an Ed25519 key", hint="remove it; `memd grant` makes another")
        return key


def _content(path: Path) -> bytes:
    """Return the content of a key's file, b"" if it is missing or unreadable."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def covers(source: str, document: str) -> bool:
    """Whether a source (a host, a session's document, or a document with subagents) includes a document."""
    return document == source or document.startswith((f"{source}:", f"{source}/"))


def check_source(source: str) -> str:
    """Return a source without white space. Raises InvalidRequest for one that would cover nothing or everything."""
    name = source.strip()
    if not name or name.endswith((":", "/")):
        raise InvalidRequest(f"{source!r} is not a source", hint="name a host (`claude-code`) or a session's document")
    return name
