"""`memd model` lists, selects and checks the embedding model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Annotated

import msgspec
import typer

from ...protocol.errors import DaemonDown, ModelMissing
from ...protocol.reply import ModelList, ModelState
from .connection import ended_with, offline, reach, reported
from .options import here
from .output import CommandAnswer, JsonFlag, plain, styled, wrapped
from .progress import wait_for_job
from .wording import count, reembedding_text, size

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="The model that turns text into vectors: list, change, check it.",
    epilog="Example: `memd model use ~/models/other`, then `memd model list` shows how far it is.",
)


DEFAULT = "default"


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """Of `model use`: the model chosen, how many records there are, how many it has to embed (0 while memd is down)."""

    id: str
    folder: str
    records: int
    to_embed: int


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    """Of `model verify`."""

    id: str
    version: str
    dimension: int
    folder: str
    files: tuple[str, ...]
    intact: bool
    problems: tuple[str, ...]


@app.command("list")
def list_models(as_json: JsonFlag = False) -> None:
    """Show the package's own model, the one you chose, which of them searches, and how far a change is.

    \b
    Examples:
      memd model list
      memd model list --json | jq .data.reembedding
    """
    with CommandAnswer("model list", as_json) as answer:
        try:
            with reach() as client:
                reply = client.models()
        except DaemonDown:
            reply = reported(offline("list-models"), ModelList)
        answer.give(reply, _list_lines(reply))


def _list_lines(reply: ModelList) -> Iterator[str]:
    for each in reply.models:
        yield f"{styled(plain(each.id) or 'unknown', 'cyan')}  {_uses(each)}"
        whose = "the package's own" if each.package else plain(each.folder)
        about = f"version {plain(each.version)}, {each.dimension} numbers, {size(each.size_bytes)}; {whose}"
        yield from (styled(line, "dim") for line in wrapped(about if each.id else whose, "  ", "  "))
        if each.problem:
            yield from wrapped(plain(each.problem), "  ", "  ")
    if reply.reembedding:
        yield from wrapped(reembedding_text(reply.reembedding))
        if reply.reembedding.problem:
            yield from wrapped(plain(reply.reembedding.problem))


def _uses(each: ModelState) -> str:
    if each.searches:
        return "searches" if each.wanted else "searches for now"
    return "chosen" if each.wanted else ""


@app.command()
def use(
    folder: Annotated[str, typer.Argument(help="A folder with a manifest.json, or: default.")],
    as_json: JsonFlag = False,
) -> None:
    """Search with another model. Its files are checked; records are embedded again while the present one searches on.

    \b
    Examples:
      memd model use ~/models/other
      memd model use default          # back to the package's own; what is still there is not embedded again
    """
    with CommandAnswer("model use", as_json) as answer:
        chosen = DEFAULT if folder == DEFAULT else here(os.path.expanduser(folder))
        try:
            with reach() as client:
                used = msgspec.convert(wait_for_job(client, client.use_model(chosen), answer).report, Used)
                lines = _use_lines(used)
        except DaemonDown:
            used = reported(offline("use-model", chosen), Used)
            lines = [f"{plain(used.id)} is chosen; `memd up` embeds with it in the background"]
        answer.give(used, (line for text in lines for line in wrapped(text)))


def _use_lines(used: Used) -> Iterator[str]:
    if not used.to_embed:
        yield f"{plain(used.id)} is chosen, and every record has its vector"
        return
    yield f"{plain(used.id)} is chosen; {used.to_embed:,} of {count(used.records, 'record')} to embed in the background"
    yield "until then the present model searches; `memd model list` shows how far it is"


@app.command()
def verify(
    folder: Annotated[str, typer.Argument(help="A folder, or: default. Without one, the model you chose.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Check each file of a model by its hash, and try the model on three sentences. Exit code 6 if anything is wrong.

    \b
    Examples:
      memd model verify
      memd model verify ~/models/other
    """
    with CommandAnswer("model verify", as_json) as answer:
        chosen = folder if folder in ("", DEFAULT) else os.path.abspath(os.path.expanduser(folder))
        done = offline("check-model", *([chosen] if chosen else []))
        if not done.stdout:
            raise ended_with(done)
        examined = msgspec.json.decode(done.stdout, type=Examined)
        answer.give(examined, _verdict_lines(examined))
    if not examined.intact:
        raise typer.Exit(ModelMissing.exit_code)


def _verdict_lines(examined: Examined) -> Iterator[str]:
    about = f"{plain(examined.id)}, {examined.dimension} numbers, in {plain(examined.folder)}"
    if examined.intact:
        verdict = (
            f"intact: {count(len(examined.files), 'file')} as in the manifest, and the vectors are as they should be"
        )
        yield from (styled(line, "green") for line in wrapped(verdict))
        yield from wrapped(about)
        return
    yield from (styled(line, "red") for line in wrapped("not a model to search with"))
    yield from wrapped(about)
    for problem in examined.problems:
        yield from wrapped(plain(problem), "  ", "- ")
