"""`memd remote`: a language model of your choice reads ended sessions (W4)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import typer

from ...protocol.errors import InvalidRequest
from ...protocol.remote import CONSENT_DAYS, ConsentState, RemoteCall, RemoteState
from .connection import PATIENCE_MS, reach
from .options import seconds
from .output import CommandAnswer, JsonFlag, plain, plain_name, styled, wrapped
from .wording import age, count, moment, pool_name, remote_text, size

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="Let a language model of your choice read ended sessions.",
    epilog="Example: `memd remote use ollama --model qwen3:8b`, then `memd remote consent orchard`",
)
DAY_S = 86_400


@app.command()
def use(
    provider: Annotated[str, typer.Argument(help="ollama, openai, anthropic, or an address such as https://HOST/v1.")],
    model: Annotated[str, typer.Option("--model", help="The model's name at the server.")],
    dialect: Annotated[
        Literal["openai", "anthropic"] | None, typer.Option(help="How to ask a server of another address.")
    ] = None,
    trust_endpoint: Annotated[
        bool, typer.Option("--trust-endpoint", help="You control the server: it may read turns without pseudonyms.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Choose a model. memd sends nothing before `memd remote consent`.

    \b
    Examples:
      memd remote use ollama --model qwen3:8b
      memd remote use openai --model gpt-5-mini
      memd remote use https://models.example.org/v1 --model qwen3:8b --trust-endpoint
    """
    with CommandAnswer("remote use", as_json) as answer, reach() as client:
        state = client.use_remote(provider, model, dialect=dialect or "", trusted=trust_endpoint)
        lines = [*_state_lines(state)]
        if not state.has_key and not state.url.startswith("http://"):
            lines += wrapped("the server may need a key: `memd remote key`")
        answer.give(state, lines)


@app.command()
def key(
    variable: Annotated[str, typer.Option("--variable", help="Take the key from this environment variable.")] = "",
    remove: Annotated[bool, typer.Option("--remove", help="Instead, delete the key.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Store the server's key, from standard input. Only the process that calls the server reads it.

    \b
    Examples:
      memd remote key < key.txt
      memd remote key --variable OPENAI_API_KEY
    """
    with CommandAnswer("remote key", as_json) as answer, reach() as client:
        state = client.remote()
        if not state.host:
            raise InvalidRequest("no remote model is chosen", hint="memd remote use openai --model NAME")
        file = client.places.remote_key(state.host)
        if remove:
            file.unlink(missing_ok=True)
            answer.give({"host": state.host, "key": False}, [f"no key for {plain_name(state.host)}"])
            return
        _write(file, os.environ.get(variable, "") if variable else _typed(state.host))
        answer.give({"host": state.host, "key": True}, [f"stored the key for {plain_name(state.host)}"])


def _typed(host: str) -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline()
    from getpass import getpass

    return getpass(f"key for {plain_name(host)}: ")


def _write(file: Path, key: str) -> None:
    """Write a key so that nobody else can read it at any time. Raises InvalidRequest."""
    key = key.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise InvalidRequest("there is no key", hint="give it on standard input, or name the variable that has it")
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = file.with_name(file.name + ".new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        stream.write(key + "\n")
        stream.flush()
        os.fsync(stream.fileno())
    fresh.replace(file)


@app.command()
def consent(
    pool: Annotated[str, typer.Argument(help="The pool, by name or title (`memd pools`).")],
    for_: Annotated[str, typer.Option("--for", help="How long: 12h, 30d, 8w.")] = f"{CONSENT_DAYS}d",
    private: Annotated[
        bool, typer.Option("--private", help="Also private sessions, which all are unless their client says otherwise.")
    ] = False,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Instead, withdraw every consent for the pool.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Consent that the model reads a pool's sessions. It covers one server and one family of models.

    Another server or another family of models needs its own consent; so do your personal pool and an agent's.

    \b
    Examples:
      memd remote consent orchard --private --for 30d
      memd remote consent personal --withdraw
    """
    with CommandAnswer("remote consent", as_json) as answer, reach(PATIENCE_MS) as client:
        state = client.consent_remote(pool, days=seconds(for_) / DAY_S, private=private, withdraw=withdraw)
        answer.give(state, _state_lines(state))


@app.command()
def preview(
    session: Annotated[str, typer.Argument(help="The session, by its id or a prefix (`memd session list`).")] = "",
    call: Annotated[str, typer.Option("--call", help="Instead, what was sent in a call (`memd remote status`).")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Print the exact bytes that memd would send. One line is one call.

    \b
    Examples:
      memd remote preview 0b5c7b3e
      memd remote preview --call 3f2a90b1
    """
    with CommandAnswer("remote preview", as_json) as answer, reach(PATIENCE_MS) as client:
        shown = client.preview_remote(session, call=call)
        if shown.state:
            answer.warn(f"memd does not send this now: {plain(shown.state)}")
        answer.give(shown, list(shown.bodies))


@app.command()
def status(as_json: JsonFlag = False) -> None:
    """Show the model, consents, tokens and last calls.

    \b
    Example:
      memd remote status
    """
    with CommandAnswer("remote status", as_json) as answer, reach(PATIENCE_MS) as client:
        state = client.remote()
        answer.give(state, [*_state_lines(state), *map(_call_line, state.calls)])


@app.command()
def off(as_json: JsonFlag = False) -> None:
    """Switch the remote model off, also during a call. `memd undo remote:PROVIDER` hides what it brought.

    \b
    Example:
      memd remote off
    """
    with CommandAnswer("remote off", as_json) as answer, reach() as client:
        answer.give(client.stop_remote(), ["the remote model is off"])


def _state_lines(state: RemoteState) -> Iterator[str]:
    if state.summary is None:
        yield "off; `memd remote use ollama --model NAME` chooses a model"
    else:
        yield from wrapped(remote_text(state.summary, state.learnt), "  ")
        trusted = ", which you control" if state.trusted else ""
        yield from wrapped(f"{plain_name(state.url)}{trusted}; {'with a' if state.has_key else 'no'} key", "  ", "  ")
    for consent in state.consents:
        yield from wrapped(_consent_text(consent), "    ", "  ")


def _consent_text(consent: ConsentState) -> str:
    model = f"{plain_name(consent.provider)} {plain_name(consent.family)}…"
    pool = plain_name(consent.title) if consent.title else pool_name(consent.pool)
    words = f"consent: {pool} for {model} until {moment(consent.until)}"
    if consent.holds:
        words += f"; {count(consent.waiting, 'session')} left to send"
        if consent.private_left:
            words += f", {consent.private_left:,} not, because they are private (`--private` adds them)"
    return words


def _call_line(call: RemoteCall) -> str:
    status = f" {call.status}" if call.status not in (0, 200) else ""
    words = f"{call.outcome}{status}: {size(call.size)}, {call.tokens:,} tokens, {call.pointed:,} pointed"
    gone = "" if call.has_text else styled(" · bytes gone", "dim")
    return f"{styled(call.id, 'cyan')}  {age(call.at):<15} {plain_name(call.document)}  {words}{gone}"
