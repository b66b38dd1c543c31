"""Access passes: JWTs signed with EdDSA and verified on this machine (A1).

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

import msgspec

from ....protocol.errors import Denied, InvalidRequest
from ..service import Reader

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from jwt.types import Options

log = logging.getLogger("memd.access")
ALGORITHM, NAME = "EdDSA", "memd"
VERIFIED = 64
"""Most passes in the cache of verified signatures; verifying one takes half a millisecond."""

_OWN_CLOCK: Options = {"verify_exp": False, "verify_iat": False, "verify_nbf": False}
"""The daemon checks times itself, with its own clock."""


class Verifier(Protocol):
    """The port that verifies a pass."""

    def verify(self, token: str) -> Reader:
        """Return the holder of a pass. Raises Denied."""
        ...


class _Claims(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of a pass."""

    sub: str
    jti: str
    exp: int | float
    nbf: int | float = 0
    pools: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


class _Verified(NamedTuple):
    """The holder of a verified pass, with the file of the key that signed it and the file's content then."""

    reader: Reader
    path: Path
    content: bytes


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
        import jwt

        claims: dict[str, object] = {
            "iss": NAME,
            "aud": NAME,
            "sub": reader.subject,
            "jti": reader.grant,
            "iat": self._now() // 1_000_000,
            "exp": reader.expires_at // 1_000_000,
            "pools": list(reader.pools),
            "sources": list(reader.sources),
        }
        return jwt.encode(claims, self._private_key(), algorithm=ALGORITHM)

    def verify(self, token: str) -> Reader:
        """Return the holder of a pass with a good signature, for memd, that has not expired. Raises Denied."""
        verified = self._known.get(token)
        if verified is None or _content(verified.path) != verified.content:  # a deleted or changed key is not trusted
            self._known.pop(token, None)
            verified = self._verified(token)
            if len(self._known) >= VERIFIED:
                self._known.clear()
            self._known[token] = verified
        reader = verified.reader
        if reader.expires_at <= self._now():
            raise Denied(f"the pass of {reader.subject} has expired", hint="`memd grant` issues a new pass")
        return reader

    def _verified(self, token: str) -> _Verified:
        import jwt

        for path, content, key in self._public_keys():
            try:
                payload = jwt.decode(token, key, [ALGORITHM], audience=NAME, options=_OWN_CLOCK)
                claims = msgspec.convert(payload, _Claims)
                if claims.nbf * 1e6 > self._now():
                    raise Denied(
                        f"the pass of {claims.sub} is not valid yet", hint="its `nbf` claim says when it becomes valid"
                    )
                reader = Reader(claims.jti, claims.sub, claims.pools, claims.sources, int(claims.exp * 1e6))
                return _Verified(reader, path, content)
            except jwt.InvalidSignatureError:
                continue
            except (jwt.PyJWTError, msgspec.ValidationError, OverflowError, ValueError) as error:
                raise Denied(f"this is not a valid pass for memd: {error}", hint="`memd grant` issues one") from error
        raise Denied(
            "no known key signed this pass",
            hint="`memd grant` issues one; memd also accepts passes whose public key is in the folder `pass_keys`",
        )

    def _public_keys(self) -> Iterator[tuple[Path, bytes, Ed25519PublicKey]]:
        """Yield the trusted keys with their files; log a file that is not a public key, for the user alone."""
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        if self._own.exists():
            content = _content(self._own)
            yield self._own, content, self._private_key().public_key()
        for path in sorted(self.trusted.glob("*.pem")):
            content = _content(path)
            try:
                key = load_pem_public_key(content)
            except (UnsupportedAlgorithm, ValueError):
                log.warning("skipped a file in pass_keys that is not a public key: %s", path.name)
                continue
            if isinstance(key, Ed25519PublicKey):
                yield path, content, key

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
