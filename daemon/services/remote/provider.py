"""The remote model that the user chose: its server, dialect and model, kept in `remote.json` beside the settings.

Invariants: only https leaves this machine, loopback may be http; no address carries a name or a password; a backup does
not contain the choice, so a restore never switches a model on.
"""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from ....protocol.errors import InvalidRequest
from ....protocol.remote import Dialect
from ...storage.durable_files import remove, replace

FILE = "remote.json"
KNOWN: dict[str, tuple[str, Dialect]] = {
    "ollama": ("http://127.0.0.1:11434/v1", "openai"),
    "openai": ("https://api.openai.com/v1", "openai"),
    "anthropic": ("https://api.anthropic.com/v1", "anthropic"),
}
"""Providers by name, each with its address and dialect."""

SERVICES = ("openai", "anthropic")
"""Providers whose servers no user controls."""

_SERVICE_HOSTS = _OPENAI, _ = tuple(urlsplit(KNOWN[name][0]).hostname for name in SERVICES)

_HINT = "give ollama, openai, anthropic, or an address such as https://models.example.org/v1"
_FAMILY = re.compile(r"[a-z]+")


class RemoteChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A model at a server. `trusted`: the user controls the server."""

    provider: str
    url: str
    dialect: Dialect
    model: str
    trusted: bool = False

    @property
    def reader(self) -> str:
        """The name of this reader in records and events."""
        return f"{READER}{self.provider}/{self.model}"

    @property
    def host(self) -> str:
        """The server with its port: what a key belongs to."""
        return urlsplit(self.url).netloc.lower()

    @property
    def is_openai(self) -> bool:
        """Whether the server is OpenAI's own."""
        return urlsplit(self.url).hostname == _OPENAI

    @property
    def family(self) -> str:
        """The letters that the model's own name begins with, such as `qwen` of `qwen3:8b`: what a consent covers."""
        name = self.model.rsplit("/", 1)[-1].lower()
        match = _FAMILY.match(name)
        return match[0] if match else name


READER = "remote:"
_choice = msgspec.json.Decoder(RemoteChoice)


def choice_of(provider: str, model: str, dialect: Dialect | Literal[""], trusted: bool) -> RemoteChoice:
    """Return the choice that a provider's name or address means. Raises InvalidRequest."""
    name = provider.strip().lower()
    url, usual = KNOWN.get(name, (provider.strip().rstrip("/"), "openai"))
    check_url(url)
    if name not in KNOWN:
        name = urlsplit(url).netloc.lower()
    choice = RemoteChoice(provider=name, url=url, dialect=dialect or usual, model=model.strip(), trusted=trusted)
    check_choice(choice)
    return choice


def check_choice(choice: RemoteChoice) -> None:
    """Raise InvalidRequest for a choice that memd does not send to, also one that was written into the file by hand."""
    check_url(choice.url)
    if choice.trusted and urlsplit(choice.url).hostname in _SERVICE_HOSTS:
        hint = "--trust-endpoint is for a server that you control"
        raise InvalidRequest(f"{choice.provider} is a service of others", hint=hint)
    if choice.provider not in (*(name for name, known in KNOWN.items() if known[0] == choice.url), choice.host):
        raise InvalidRequest("the provider's name is not that of its address", hint=_HINT)
    if not choice.model or not choice.model.isprintable():
        raise InvalidRequest("the model has no name", hint="name it as the server does: --model qwen3:8b")


def check_url(url: str) -> None:
    """Raise InvalidRequest for an address that memd does not send to."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise InvalidRequest(f"{url!r} is no address: {error}", hint=_HINT) from error
    if parts.scheme not in ("http", "https") or not host:
        raise InvalidRequest(f"{url!r} is neither a provider nor an address", hint=_HINT)
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise InvalidRequest("the address has a name, a password or a query", hint="`memd remote key` takes the key")
    if parts.scheme == "http" and not is_loopback(host):
        raise InvalidRequest(f"{host} is another machine: memd sends only through https", hint="give its https address")


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class ChoiceFile:
    """The file with the choice. Any thread reads it; the slow lane changes it."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE

    def read(self) -> RemoteChoice | None:
        """Return the choice; None without one, or for a file that does not hold a valid one."""
        try:
            choice = _choice.decode(self._file.read_bytes())
            check_choice(choice)
        except (OSError, msgspec.MsgspecError, InvalidRequest):
            return None
        return choice

    def write(self, choice: RemoteChoice | None) -> None:
        """Replace the choice durably, or remove it. Raises OSError."""
        if choice is None:
            if self._file.parent.exists():
                remove(self._file)
            return
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace(self._file, msgspec.json.format(msgspec.json.encode(choice)))
