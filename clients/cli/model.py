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
from .output import CommandAnswer, JsonFlag, plain, plain_name, styled, wrapped
from .progress import wait_for_job
from .wording import count, reembedding_text, size

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="List, select or check the embedding model.",
    epilog="Example: `memd model use ~/models/other`, then `memd model list` shows the progress.",
)


DEFAULT = "default"


class ModelUsed(msgspec.Struct, frozen=True, kw_only=True):
    """Of `model use`. Without a daemon both numbers are 0."""

    id: str
    folder: str
    records: int
    to_embed: int


class ModelCheck(msgspec.Struct, frozen=True, kw_only=True):
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
    """List the package's own model and the selected one.

    \b
    Examples:
      memd model list
      memd model list --json | jq .data.reembedding
    """
    with CommandAnswer("model list", as_json) as answer:
        try:
            with reach() as client:
                listed = client.models()
        except DaemonDown:
            listed = reported(offline("list-models"), ModelList)
        answer.give(listed, _list_lines(listed))


def _list_lines(listed: ModelList) -> Iterator[str]:
    for model in listed.models:
        yield f"{styled(plain(model.id) or 'unknown', 'cyan')}  {_use_text(model)}"
        source = "the package's own" if model.package else plain_name(model.folder)
        about = f"version {plain(model.version)}, {model.dimension} dimensions, {size(model.size_bytes)}; {source}"
        yield from (styled(line, "dim") for line in wrapped(about if model.id else source, "  ", "  "))
        if model.problem:
            yield from wrapped(plain(model.problem), "  ", "  ")
    if listed.reembedding:
        yield from wrapped(reembedding_text(listed.reembedding))
        if listed.reembedding.problem:
            yield from wrapped(plain(listed.reembedding.problem))


def _use_text(model: ModelState) -> str:
    if model.searches:
        return "in use" if model.wanted else "in use until the selected model is ready"
    return "selected" if model.wanted else ""


@app.command()
def use(
    folder: Annotated[str, typer.Argument(help="A folder with a manifest.json, or default.")], as_json: JsonFlag = False
) -> None:
    """Select another model. memd checks it, then embeds all records again. Until then searches use the current model.

    \b
    Examples:
      memd model use ~/models/other
      memd model use default          # the package's own model
    """
    with CommandAnswer("model use", as_json) as answer:
        chosen = DEFAULT if folder == DEFAULT else here(os.path.expanduser(folder))
        try:
            with reach() as client:
                used = msgspec.convert(wait_for_job(client, client.use_model(chosen), answer).report, ModelUsed)
                lines = _use_lines(used)
        except DaemonDown:
            used = reported(offline("use-model", chosen), ModelUsed)
            lines = [f"selected {plain(used.id)}; after `memd up` the daemon embeds all records with it"]
        answer.give(used, (line for text in lines for line in wrapped(text)))


def _use_lines(used: ModelUsed) -> Iterator[str]:
    if not used.to_embed:
        yield f"selected {plain(used.id)}; every record already has its vector"
        return
    to_embed = f"{used.to_embed:,} of {count(used.records, 'record')} to embed in the background"
    yield f"selected {plain(used.id)}; {to_embed}"
    yield "until then searches use the current model; `memd model list` shows the progress"


@app.command()
def verify(
    folder: Annotated[str, typer.Argument(help="A folder, or default. Without it: the selected model.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Check the files of a model and try the model.

    The command compares each file with its hash and embeds three sentences. The exit code is 6 if anything is wrong.

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
        examined = msgspec.json.decode(done.stdout, type=ModelCheck)
        answer.give(examined, _verdict_lines(examined))
    if not examined.intact:
        raise typer.Exit(ModelMissing.exit_code)


def _verdict_lines(examined: ModelCheck) -> Iterator[str]:
    about = f"{plain(examined.id)}, {examined.dimension} dimensions, in {plain_name(examined.folder)}"
    if examined.intact:
        verdict = f"intact: {count(len(examined.files), 'file')} match the manifest, and the vectors are correct"
        yield from (styled(line, "green") for line in wrapped(verdict))
        yield from wrapped(about)
        return
    yield from (styled(line, "red") for line in wrapped("this model can't be used"))
    yield from wrapped(about)
    for problem in examined.problems:
        yield from wrapped(plain(problem), "  ", "- ")
