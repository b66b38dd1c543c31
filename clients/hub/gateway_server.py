"""Runs the gateway: an HTTP server over TLS, or over plain HTTP behind a proxy on this machine (H3)."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import uvicorn

from ...protocol.errors import InvalidRequest, Refused
from .database import HubDatabase
from .gateway import Gateway, TrustedKeys

WAITING = 256
"""Most requests at once; those above wait for one of the database connections, or are turned away."""


class Listening(NamedTuple):
    """Where the gateway listens. `certificate`, `private_key`: PEM files, none for plain HTTP."""

    host: str
    port: int
    certificate: Path | None = None
    private_key: Path | None = None

    @property
    def is_encrypted(self) -> bool:
        return self.certificate is not None


def serve(
    database_url: str, keys: Path, listening: Listening, connections: int, announce: Callable[[], object]
) -> None:
    """Serve until a signal. `announce`: called once the database is open. Raises Refused, InvalidRequest, Unavailable,
    UnsupportedFormat."""
    _check(keys, listening)
    database = HubDatabase(database_url, connections)
    database.open()
    try:
        application = Gateway(database, TrustedKeys(keys)).application()
        config = uvicorn.Config(
            application,
            host=listening.host,
            port=listening.port,
            ssl_certfile=listening.certificate,
            ssl_keyfile=listening.private_key,
            interface="asgi3",
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=10,
            limit_concurrency=WAITING,
        )
        announce()
        uvicorn.Server(config).run()
    finally:
        database.close()


def _check(keys: Path, listening: Listening) -> None:
    if not any(keys.glob("*.pem")):
        raise InvalidRequest(
            f"{keys} holds no public key (*.pem)",
            hint="`memd hub grant` makes one, or put there that of your identity layer",
        )
    if (listening.certificate is None) != (listening.private_key is None):
        raise InvalidRequest("TLS needs both --certificate and --private-key")
    _check_certificate(listening)
    if not listening.is_encrypted and not is_loopback(listening.host):
        raise Refused(
            f"passes would travel unencrypted to {listening.host}",
            hint="give --certificate and --private-key, or listen on 127.0.0.1 behind a proxy with TLS",
        )


def _check_certificate(listening: Listening) -> None:
    if listening.certificate is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(listening.certificate, listening.private_key)
    except OSError as error:  # among them ssl.SSLError
        raise InvalidRequest(
            f"{listening.certificate} and {listening.private_key} can't be used for TLS: {error}",
            hint="--certificate names the certificate with its chain, --private-key its key, both PEM",
        ) from error


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
