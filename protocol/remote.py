"""Requests and replies about a remote model that reads ended sessions (W4): off unless the user switches it on.

Invariants: nothing here contains a key; a call is listed before its bytes leave the machine.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from .request_fields import Request

Dialect = Literal["openai", "anthropic"]
"""How a server is asked: `/chat/completions` or `/messages`."""

CallOutcome = Literal["sending", "taken", "dropped", "refused", "unsent", "failed", "timed out", "unknown"]
"""`sending`: memd waits for the answer; `taken`: memd read statements in it; `dropped`: it was no list of statements;
`refused`: the server refused the call (status 4xx); `unsent`: there was no connection; `failed`: the server failed or
redirected; `timed out`: the deadline passed; `unknown`: the daemon ended during the call."""

CONSENT_DAYS = 90


class UseRemote(Request, tag="use_remote", frozen=True, kw_only=True):
    """Choose the remote model that may read ended sessions (W4). `provider`: `ollama`, `openai`, `anthropic` or a URL;
    `dialect`: "" for the provider's own; `trusted`: the user controls the server, so that it may read turns as they
    are. Nothing is sent without consent."""

    provider: Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
    model: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    dialect: Dialect | Literal[""] = ""
    trusted: bool = False


class StopRemote(Request, tag="stop_remote", frozen=True, kw_only=True):
    """Switch the remote model off, also during a call. Consents stay in the journal."""


class ConsentRemote(Request, tag="consent_remote", frozen=True, kw_only=True):
    """Consent that the chosen remote model reads the sessions of a pool for so many days, or withdraw every
    consent for the pool. `private`: also the sessions whose visibility is private."""

    pool: Annotated[str, msgspec.Meta(max_length=512)]
    days: Annotated[float, msgspec.Meta(gt=0, le=3650)] = CONSENT_DAYS
    private: bool = False
    withdraw: bool = False


class PreviewRemote(Request, tag="preview_remote", frozen=True, kw_only=True):
    """Return the exact bodies that memd would send of a session, or sent in a `call`; exactly one is named."""

    session: str = ""
    call: str = ""


class GetRemote(Request, tag="remote", frozen=True, kw_only=True):
    """Return the chosen remote model, the consents, today's tokens and the last calls."""


class ConsentState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A consent for a pool and a provider. `title`: the pool's, "" without one; `family`: the beginning of the model's
    name that it covers; `until`: RFC 3339. `holds`: it covers the chosen model now. `waiting`, `private_left`: ended
    sessions of which memd would send more, and those that only `private` would add."""

    pool: str
    provider: str
    url: str
    family: str
    until: str
    title: str = ""
    private: bool = False
    holds: bool = False
    waiting: int = 0
    private_left: int = 0


class RemoteCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call in the journal. `tokens`: reserved until it is settled; `size`: bytes sent; `has_text`: memd still has
    them. `pointed`, `dropped`: statements that memd took and did not take."""

    id: str
    at: str
    reader: str
    document: str
    outcome: CallOutcome = "sending"
    tokens: int = 0
    size: int = 0
    pointed: int = 0
    dropped: int = 0
    status: int = 0
    has_text: bool = False


class RemoteDay(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The calls of one local day: `tokens` reserved or used, statements taken and dropped."""

    calls: int = 0
    tokens: int = 0
    pointed: int = 0
    dropped: int = 0
    timed_out: int = 0
    failed: int = 0


class RemoteSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The remote model in `status`. `cap`: tokens a day; `state`: why memd sends nothing now, "" where it may."""

    provider: str
    model: str
    today: RemoteDay
    cap: int
    state: str = ""


class RemoteState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Reply to `remote`, `use_remote`, `stop_remote` and `consent_remote`. `summary`: None while it is off. `host`: the
    server that a key is for; `has_key`: whether memd has one for it; `learnt`: records that the model led to."""

    summary: RemoteSummary | None = None
    url: str = ""
    host: str = ""
    dialect: Dialect = "openai"
    trusted: bool = False
    has_key: bool = False
    learnt: int = 0
    consents: tuple[ConsentState, ...] = ()
    calls: tuple[RemoteCall, ...] = ()


class RemotePreview(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `preview_remote`: the body of each call, exactly. `state`: why memd does not send them, or ""."""

    document: str
    url: str
    bodies: tuple[str, ...]
    state: str = ""
