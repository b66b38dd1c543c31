"""Access passes: JWTs signed with EdDSA, and how memd verifies them (A1).

Pure: no file, no clock. Invariants: a pass only restricts its holder; PyJWT and cryptography are imported only when a
pass is signed or verified.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

import msgspec

from .errors import Denied

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from jwt.types import Options

ALGORITHM, NAME = "EdDSA", "memd"

Signer = TypeVar("Signer")

_OWN_CLOCK: Options = {"verify_exp": False, "verify_iat": False, "verify_nbf": False}
"""Times are checked here, by the clock of the caller."""


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    """The holder of a pass and what it covers: `pools` and `sources` are the only ones, empty for all. `grant`: the id
    of the pass; `expires_at`, `issued_at`: microseconds, the latter 0 if the pass does not say it."""

    subject: str
    grant: str
    pools: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    expires_at: int = 0
    issued_at: int = 0


class _Claims(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of a pass, times in seconds."""

    sub: str
    jti: str
    exp: int | float
    nbf: int | float = 0
    iat: int | float = 0
    pools: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


def signed_pass(pass_: Pass, issued_at: int, key: Ed25519PrivateKey) -> str:
    """Return the token of a pass. `issued_at`: microseconds."""
    import jwt

    claims: dict[str, object] = {
        "iss": NAME,
        "aud": NAME,
        "sub": pass_.subject,
        "jti": pass_.grant,
        "iat": issued_at / 1_000_000,
        "exp": pass_.expires_at // 1_000_000,
        "pools": list(pass_.pools),
        "sources": list(pass_.sources),
    }
    return jwt.encode(claims, key, algorithm=ALGORITHM)


def public_key(pem: bytes) -> Ed25519PublicKey | None:
    """Return the key in a PEM text, None if it is no Ed25519 public key."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(pem)
    except (UnsupportedAlgorithm, ValueError):
        return None
    return key if isinstance(key, Ed25519PublicKey) else None


def verified_pass(token: str, keys: Iterable[Ed25519PublicKey], now: int) -> Pass:
    """Return a pass for memd that one of these keys signed and that is valid at `now`, microseconds. Raises Denied."""
    pass_, _ = pass_and_signer(token, ((None, key) for key in keys), now)
    return pass_


def pass_and_signer(token: str, signers: Iterable[tuple[Signer, Ed25519PublicKey]], now: int) -> tuple[Pass, Signer]:
    """Return what `verified_pass` does, and which signer's key it was. Raises Denied."""
    import jwt

    for signer, key in signers:
        try:
            payload = jwt.decode(token, key, [ALGORITHM], audience=NAME, options=_OWN_CLOCK)
            pass_ = _pass_of(msgspec.convert(payload, _Claims), now)
        except jwt.InvalidSignatureError:
            continue
        except (jwt.PyJWTError, msgspec.ValidationError, OverflowError, ValueError) as error:
            raise Denied(f"this is not a valid pass for memd: {error}", hint="`memd grant` issues one") from error
        check_expiry(pass_, now)
        return pass_, signer
    raise Denied(
        "no known key signed this pass",
        hint="`memd grant` issues one; memd also accepts passes whose public key is in the folder `pass_keys`",
    )


def _pass_of(claims: _Claims, now: int) -> Pass:
    if claims.nbf * 1e6 > now:
        raise Denied(f"the pass of {claims.sub} is not valid yet", hint="its `nbf` claim says when it becomes valid")
    return Pass(
        subject=claims.sub,
        grant=claims.jti,
        pools=claims.pools,
        sources=claims.sources,
        expires_at=int(claims.exp * 1e6),
        issued_at=round(claims.iat * 1e6),
    )


def check_expiry(pass_: Pass, now: int) -> None:
    """Raise Denied if a pass has expired at `now`, microseconds."""
    if pass_.expires_at <= now:
        raise Denied(f"the pass of {pass_.subject} has expired", hint="`memd grant` issues a new pass")
