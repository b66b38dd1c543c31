"""`memd policy`: what a project's `.pi/pi.config.yaml` decides (G8)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec
import typer

from ...protocol.errors import InvalidRequest
from ...protocol.policy import POLICY_BYTES, POLICY_FILE, PolicyState
from .connection import reach
from .options import Cwd, here, path
from .output import CommandAnswer, JsonFlag, agree, plain, plain_name, styled, wrapped
from .wording import count

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    help="Show a project's policy, accept it, or check a file.",
    epilog="Example: `memd policy check .pi/pi.config.yaml`, then `memd policy show`",
)
Project = Annotated[str, typer.Option("--project", help="A project by pool or title, instead of by folder.")]


@app.command()
def show(project: Project = "", cwd: Cwd = None, as_json: JsonFlag = False) -> None:
    """Show what decides in a project, and what waits for you.

    memd reads the file .pi/pi.config.yaml of a project that you trust (`memd pi trust`). What it makes stricter holds
    at once; what it makes looser holds after `memd policy accept`.

    \b
    Examples:
      memd policy show
      memd policy show --project orchard --json
    """
    with CommandAnswer("policy show", as_json) as answer, reach() as client:
        state = client.policy(project, "" if project else here(cwd))
        answer.give(state, [*_about(state), *_values(state), *_open(state)])


@app.command()
def accept(
    project: Project = "",
    cwd: Cwd = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Accept what a project's policy file loosens.

    \b
    Examples:
      memd policy accept
      memd policy accept --project orchard --yes
    """
    with CommandAnswer("policy accept", as_json) as answer, reach() as client:
        folder = "" if project else here(cwd)
        state = client.policy(project, folder)
        if state.problem:
            raise InvalidRequest(f"memd does not take the file: {state.problem}", hint="correct it first")
        if not state.loosened or state.accepted:
            answer.give(state, ["nothing waits for you: the policy file loosens no rule, or you accepted it"])
            return
        if not yes:
            rules = ", ".join(rule.rule for rule in state.loosened)
            hint = "look at it with `memd policy show`"
            agree("Accept this?", _loosened(state), as_json=as_json, why=f"the file loosens {rules}", hint=hint)
        after = client.accept_policy(state.digest, project, folder)
        answer.give(after, [f"accepted: {count(len(after.loosened), 'rule')} of {plain(after.file)}"])


@app.command()
def check(
    file: Annotated[Path, typer.Argument(parser=path, help="A policy file.")],
    project: Project = "",
    cwd: Cwd = None,
    as_json: JsonFlag = False,
) -> None:
    """Check a policy file, without using it. The exit code is 1 if memd would not take it.

    \b
    Examples:
      memd policy check .pi/pi.config.yaml
    """
    with CommandAnswer("policy check", as_json) as answer, reach() as client:
        try:
            with file.open("rb") as stream:
                data = stream.read(POLICY_BYTES + 1)
        except OSError as error:
            raise InvalidRequest(f"{file} can't be read: {error.strerror}", hint="name a readable file") from error
        state = client.check_policy(data, project, "" if project else here(cwd))
        verdict = f"memd would refuse this file: {plain(state.problem)}" if state.problem else "this is a policy"
        answer.give(
            state, [*wrapped(styled(verdict, "red" if state.problem else "green")), *_loosened(state), *_notes(state)]
        )
    if state.problem:
        raise typer.Exit(1)


def _about(state: PolicyState) -> Iterator[str]:
    name = plain_name(state.title or state.pool)
    if state.file and state.digest:
        yield styled(f"policy of {name}, from {plain(state.file)}", "bold")
        return
    yield styled(f"policy of {name}: the default", "bold")
    if not state.pool.startswith("project/"):
        yield "this folder is in no project that memd knows"
    elif not state.trusted:
        yield from wrapped(f"memd reads no {POLICY_FILE} here: you have not trusted this project, see `memd pi trust`")


def _values(state: PolicyState) -> Iterator[str]:
    for name, value in _flat(msgspec.to_builtins(state.policy)):
        yield f"  {name}: {plain(value)}"


def _flat(values: dict[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    value: Any
    for key, value in values.items():
        if key == "tag_boost":
            yield above + key, ", ".join(f"{tag} {factor:g}" for tag, factor in value.items()) or "none"
        elif isinstance(value, dict):
            yield from _flat(cast("dict[str, Any]", value), f"{above}{key}.")
        elif isinstance(value, list | tuple):
            nothing = "L1" if key == "always_load" else "any"
            yield above + key, ", ".join(cast("list[str]", value)) or nothing
        else:
            yield above + key, str(value)


def _open(state: PolicyState) -> Iterator[str]:
    if state.problem:
        problem = f"memd does not take the file, and the policy before stays: {plain(state.problem)}"
        yield from wrapped(styled(problem, "red"))
    yield from _loosened(state)
    yield from _notes(state)


def _notes(state: PolicyState) -> Iterator[str]:
    for note in state.notes:
        yield from wrapped(styled(plain(note), "yellow"))


def _loosened(state: PolicyState) -> Iterator[str]:
    if not state.loosened:
        return
    if state.accepted:
        yield f"you accepted what the file loosens: {count(len(state.loosened), 'rule')}"
        return
    yield styled("the file loosens these rules; the default holds until `memd policy accept`:", "yellow")
    for rule in state.loosened:
        yield from wrapped(f"  {rule.rule}: {plain(rule.default)} → {plain(rule.asked)}")
