"""`memd patch`: proposed changes of the playbook, each as one file (G2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...protocol.errors import InvalidRequest, MemdError, NotFound, Refused
from ...protocol.governance import PatchBytes
from .connection import PATIENCE_MS, reach
from .options import DryRun
from .output import CommandAnswer, JsonFlag, agree, plain, plain_name, wrapped
from .pi import Cwd, Yes, operation_lines, patch_lines, pool_of, repository_with_pi, sync_lines, today
from .wording import count, judged_lines

if TYPE_CHECKING:
    from ..pi.pi_sync import SyncReport
    from ..python.client import Client

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="Show and decide proposed changes of a project's playbook.",
    epilog="Example: `memd patch list`, then `memd patch apply 7q3hjwch`",
)

Name = Annotated[str, typer.Argument(help="A patch's name or a proposal's id, or an unambiguous prefix.")]
Proposal = Annotated[str, typer.Argument(help="A proposal's id, or an unambiguous prefix.")]
Pool = Annotated[str, typer.Option("--pool", help="The project's pool or title, instead of the folder's.")]


@app.command(name="list")
def list_(
    all: Annotated[bool, typer.Option("--all", help="Include what is applied, taken or reverted.")] = False,
    pool: Pool = "",
    cwd: Cwd = None,
    as_json: JsonFlag = False,
) -> None:
    """List the patches that wait for a decision.

    \b
    Examples:
      memd patch list
      memd patch list --all --json
    """
    with CommandAnswer("patch list", as_json) as answer, reach(PATIENCE_MS) as client:
        from ..pi.pi_sync import known_patches

        listed = client.patches(pool) if pool else known_patches(client, pool_of(client, cwd))
        rows = [patch for patch in listed.patches if all or patch.standing in ("proposed", "sent")]
        lines = [line for patch in rows for line in patch_lines(patch)]
        answer.give(listed, lines or ["no patch waits; `memd patch list --all` has the others"])


@app.command()
def show(patch: Name, pool: Pool = "", cwd: Cwd = None, as_json: JsonFlag = False) -> None:
    """Show a patch: what it changes, and the records behind it.

    \b
    Examples:
      memd patch show 7q3hjwch
      memd patch show patch_20260210_9f3k2m1q --json
    """
    with CommandAnswer("patch show", as_json) as answer, reach(PATIENCE_MS) as client:
        try:
            shown = client.patch(pool or pool_of(client, cwd), patch)
        except NotFound:
            if (shown := _of_file(cwd, patch)) is None:
                raise
        answer.give(_as_fields(shown), _shown_lines(shown))


def _of_file(cwd: str | None, patch: str) -> PatchBytes | None:
    """A patch that came with the repository, as its file has it; None if there is not one such file."""
    from ..pi.pi_files import read_state

    try:
        folder = repository_with_pi(cwd).folder
    except MemdError:
        return None
    patches = read_state(folder / ".pi").patches if folder else []
    named = [fields["patch_id"] for fields in patches if fields and fields["patch_id"].startswith(patch)]
    if folder is None or len(named) != 1:
        return None
    return PatchBytes(patch=named[0], data=(folder / ".pi" / "patches" / f"{named[0]}.json").read_bytes())


def _as_fields(shown: PatchBytes) -> dict[str, Any]:
    return {"patch": shown.patch, "standing": shown.standing, "file": _file(shown), "left_out": shown.left_out}


def _file(shown: PatchBytes) -> dict[str, Any]:
    import msgspec

    return msgspec.json.decode(shown.data, type=dict[str, Any]) if shown.data else {}


def _shown_lines(shown: PatchBytes) -> Iterator[str]:
    fields = _file(shown)
    by = f" · by {plain_name(fields['generated_by'])}" if fields.get("generated_by") else ""
    yield f"{plain_name(shown.patch)}{by}{f' · {shown.standing}' if shown.standing else ''}"
    for operation in fields.get("ops", ()):
        yield from operation_lines([operation])
        record: dict[str, Any] = operation.get("record") or {}
        for proof in record.get("evidence", ()):
            note = f" ({plain(proof['note'])})" if proof.get("note") else ""
            yield from wrapped(f"{plain_name(proof['type'])} {plain(proof['ref'])}{note}", " " * 17, " " * 13 + "· ")
        if condition := record.get("review", {}).get("change_condition"):
            yield from wrapped(f"changes if: {plain(condition)}", " " * 17, " " * 13 + "· ")
    yield from _left_lines(shown)


def _left_lines(shown: PatchBytes) -> Iterator[str]:
    for name, why in shown.left_out:
        yield from wrapped(f"{plain_name(name)} stays here: {plain(why)}", "    ", "  ")


@app.command()
def write(
    proposal: Annotated[str, typer.Argument(help="A proposal's id, or an unambiguous prefix.")] = "",
    playbook: Annotated[
        bool, typer.Option("--playbook", help="One patch of all records of the playbook that no patch has yet.")
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    cwd: Cwd = None,
    as_json: JsonFlag = False,
) -> None:
    """Write a proposal as a file that others decide, for a pull request.

    It changes nothing here until it comes back with the default branch. A pull request has this file alone.

    \b
    Examples:
      memd patch write 7q3hjwch
      memd patch write --playbook
    """
    with CommandAnswer("patch write", as_json) as answer, reach(PATIENCE_MS) as client:
        from ..pi.pi_files import write_patch_file

        if bool(proposal) == playbook:
            raise InvalidRequest("name a proposal, or --playbook", hint="`memd patch list` has the proposals")
        folder = repository_with_pi(cwd).folder
        if folder is None:
            raise InvalidRequest("a bare repository has no files", hint="go to a clone of it")
        pool = pool_of(client, cwd)
        if playbook:
            planned = client.publish_playbook(pool, dry_run=True)
            if dry_run or not planned.data:
                lines = list(_shown_lines(planned)) if planned.data else ["every record of the playbook has a patch"]
                answer.give(_as_fields(planned), [*lines, *([] if planned.data else _left_lines(planned))])
                return
            _confirm(planned, yes, as_json)
            made = client.publish_playbook(pool)
        elif dry_run:
            planned = client.patch(pool, proposal)
            answer.give(_as_fields(planned), _shown_lines(planned))
            return
        else:
            made = client.send_patch(pool, proposal)
        fate = write_patch_file(folder / ".pi", made.patch, made.data)
        if fate == "yours":
            hint = "restore that file from git; `memd pi sync` writes it then"
            raise Refused(f".pi/patches/{made.patch}.json is there with other content", hint=hint)
        lines = [f"wrote .pi/patches/{made.patch}.json", *_left_lines(made)]
        lines += (
            [] if playbook else wrapped("commit it alone, on a branch of its own; once merged, `memd pi sync` takes it")
        )
        answer.give(_as_fields(made), lines)


def _confirm(planned: PatchBytes, yes: bool, as_json: bool) -> None:
    if yes:
        return
    why, hint = "others can read what a patch has", "`memd patch write --playbook --dry-run` shows it"
    agree("Write it?", _shown_lines(planned), as_json=as_json, why=why, hint=hint)


@app.command()
def apply(proposal: Proposal, dry_run: DryRun = False, cwd: Cwd = None, as_json: JsonFlag = False) -> None:
    """Accept a proposed patch: change the playbook, and write its files.

    \b
    Examples:
      memd patch apply 7q3hjwch --dry-run
      memd patch apply 7q3hjwch
    """
    with CommandAnswer("patch apply", as_json) as answer, reach(PATIENCE_MS) as client:
        decided = client.decide(proposal, True, dry_run=dry_run)
        changes = [line for record in decided.records for line in judged_lines(record, dry_run)]
        if dry_run:
            answer.give(decided, changes or ["no record would change"])
            return
        report = synced(client, cwd)
        lines = [*changes, *(sync_lines(report) if report else ["no .pi folder here: `memd pi init` makes one"])]
        lines += [f"to undo this: memd inbox reopen {plain_name(proposal)}", f"{count(decided.open, 'proposal')} left"]
        answer.give({"decided": decided, "sync": report}, lines)


def synced(client: Client, cwd: str | None = None) -> SyncReport | None:
    """Write the files after a decision, if the folder's repository has a `.pi`; None if it has none, or if that fails:
    `memd pi sync` makes up for it."""
    from ..pi import pi_sync

    try:
        repository = repository_with_pi(cwd)
        return pi_sync.sync(client, repository, pool_of(client, cwd), day=today())
    except MemdError:
        return None
