"""`memd pi`: the `.pi` folder of a repository, whose patches are the playbook's changes (G2, G5).

This process, in the user's own session, reads and writes the files; the daemon decides what counts.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...protocol.errors import InvalidRequest, MemdError, NotFound, Unavailable
from ...protocol.governance import PatchesTaken, PatchState, TreeFile
from ..hooks.session_pulls import stop_syncing, sync_at_start
from .connection import PATIENCE_MS, reach
from .options import DryRun, here, path
from .output import CommandAnswer, JsonFlag, agree, plain, plain_name, styled, wrapped
from .wording import UNBOUND, age, count

if TYPE_CHECKING:
    from ..pi.pi_files import LaidFile, PiFolder
    from ..pi.pi_sync import CheckReport, SyncReport
    from ..pi.pi_tree import CommittedPatches, PiRepository
    from ..python.client import Client

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="Keep a project's playbook in its repository, as patches.",
    epilog="Example: `memd pi init` in a repository, then `memd pi trust` and `memd pi sync`",
)

PERSONAL = "personal"
SHOWN = 40
"""Lines of patches that a question shows."""

_STANDINGS = {
    "proposed": "waits in the inbox",
    "sent": "sent: others decide",
    "applied": "applied here",
    "taken": "taken from the repository",
    "gone": "reverted in the repository",
}

Cwd = Annotated[str | None, typer.Option("--cwd", help="The repository's folder, if not the current one.")]
Branch = Annotated[str, typer.Option("--branch", help="The default branch, if nothing in the repository tells it.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


# --- begin -----------------------------------------------------------------------------------------------------------
@app.command()
def init(
    personal: Annotated[
        Path | None,
        typer.Option(
            "--personal",
            metavar="DIR",
            parser=path,
            help="Make the folder of your own identity and playbook there, in a private repository.",
        ),
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Bring the schemas and the script to this version's.")
    ] = False,
    cwd: Cwd = None,
    as_json: JsonFlag = False,
) -> None:
    """Make the .pi folder of a repository. It changes no file that is there.

    \b
    Examples:
      memd pi init
      memd pi init --personal ~/dotfiles
    """
    with CommandAnswer("pi init", as_json) as answer:
        from ..pi import pi_files
        from ..pi.pi_tree import find_repository, repository_at

        if personal is not None and not personal.is_dir():
            raise NotFound(f"there is no folder {plain_name(str(personal))}", hint="make it first, in a repository")
        repository = repository_at(str(personal)) if personal is not None else find_repository(here(cwd))
        folder = _files_of(repository)
        laid = pi_files.init(folder, personal=personal is not None, update=update)
        state = pi_files.read_state(folder)
        stated = {id for records in state.folded.records.values() for id in records}
        unstated = [layer for layer in state.layers if state.current(layer).strip() and not stated]
        following = "`memd patch write --playbook` writes what you pinned for yourself here; then commit .pi"
        if personal is None:
            following = "`memd pi trust` lets memd read it; then commit .pi"
        lines = _laid_lines(folder, laid, is_unstated=bool(unstated))
        answer.give({"folder": str(folder), "files": laid}, [*lines, *wrapped(f"next: {following}")])


def _laid_lines(folder: Path, laid: Sequence[LaidFile], *, is_unstated: bool) -> Iterator[str]:
    made = [row for row in laid if row.fate in ("made", "updated")]
    yield f"{plain_name(str(folder))}: {count(len(made), 'file')} written, {len(laid) - len(made)} as they were"
    for row in laid:
        if row.fate == "yours":
            yield from wrapped(f"{row.file} differs from memd's and stays (--update is for memd's own)", "    ", "  ")
    if is_unstated:
        yield from wrapped("memory/ has records that no patch states: `memd pi adopt` makes a patch of them")


@app.command()
def trust(
    off: Annotated[bool, typer.Option("--off", help="Take it back: what came from there is hidden.")] = False,
    yes: Yes = False,
    branch: Branch = "",
    cwd: Cwd = None,
    as_json: JsonFlag = False,
) -> None:
    """Let memd read the .pi folder of this repository. First it shows what would come.

    Everything that the default branch has then counts as reviewed: who may merge there may change the playbook.

    \b
    Examples:
      memd pi trust
      memd pi trust --off
    """
    with CommandAnswer("pi trust", as_json) as answer, reach(PATIENCE_MS) as client:
        from ..pi import pi_sync

        repository = repository_with_pi(cwd)
        pool = pool_of(client, cwd)
        if pool == PERSONAL:
            hint = "`memd patch write --playbook` writes what you pinned there; nothing needs trust"
            raise InvalidRequest("memd takes nothing from the folder of your own memory", hint=hint)
        if off:
            listed = client.trust_pi(pool, trusted=False)
            stop_syncing(client.places, pool)
            answer.give(listed, wrapped("memd reads this .pi folder no more, and what came from there is hidden"))
            return
        committed = repository.committed(branch)
        if not yes:
            planned = _planned_lines(client, repository, pool, committed)
            hint = "`memd pi trust` in a terminal shows first what would come"
            agree("Trust it?", planned, as_json=as_json, why="its patches change what agents read", hint=hint)
        listed = client.trust_pi(pool_of(client, cwd, bind=True))
        if repository.folder is not None:
            sync_at_start(client.places, listed.pool, str(repository.folder))
        report = pi_sync.sync(client, repository, listed.pool, branch, day=today())
        answer.give({"pool": listed.pool, "sync": report}, ["trusted", *sync_lines(report)])


def _planned_lines(client: Client, repository: PiRepository, pool: str, committed: CommittedPatches) -> Iterator[str]:
    """What would come from the tree: as the daemon tells it, or from the files of a project that memd does not know."""
    from ..pi import pi_apply_patch, pi_sync

    if committed.why_not or not committed.present:
        yield from wrapped(f"nothing would come now: {committed.why_not or 'its default branch has no patch'}")
        return
    yield styled(f"its default branch has {count(len(committed.present), 'patch', 'patches')}", "bold")
    try:
        listed = client.patches(pool)
    except NotFound:
        for name in committed.present:
            try:
                patch = pi_apply_patch.read(repository.data(committed.blobs[name]))
            except pi_apply_patch.MalformedPatch as error:
                yield from wrapped(f"{name}: {error}", "    ", "  ")
            else:
                yield from operation_lines(patch.get("ops", ()))
        return
    planned = pi_sync.take(client, repository, listed, committed, dry_run=True)
    yield from _taken_lines(planned) if planned else ["nothing of it is new"]


# --- carry -----------------------------------------------------------------------------------------------------------
@app.command()
def sync(
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print errors alone; a missing .pi folder is no error.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also write over what was changed by hand in memory/*.jsonl.")
    ] = False,
    take_only: Annotated[bool, typer.Option("--take-only", help="Only take: write no file.")] = False,
    branch: Branch = "",
    dry_run: DryRun = False,
    cwd: Cwd = None,
    as_json: JsonFlag = False,
) -> None:
    """Take new patches from the repository, and write those it lacks.

    memd reads the committed tree of the default branch, and only while you are on it. It commits nothing. Where you
    trust the folder, the start of an agent's session takes new patches too, at most every 10 minutes.

    \b
    Examples:
      git pull && memd pi sync
      memd pi sync --dry-run
    """
    with CommandAnswer("pi sync", as_json) as answer, reach(PATIENCE_MS) as client:
        from ..pi import pi_sync

        try:
            repository = repository_with_pi(cwd)
            pool = pool_of(client, cwd)
            report = pi_sync.sync(
                client, repository, pool, branch, dry_run=dry_run, force=force, take_only=take_only, day=today()
            )
        except (NotFound, Unavailable):
            if quiet:
                return
            raise
        answer.give(report, _trouble_lines(report) if quiet else sync_lines(report))


def sync_lines(report: SyncReport) -> Iterator[str]:
    """What a sync did."""
    would = "would " if report.dry_run else ""
    if report.why_not:
        yield from wrapped(f"took nothing: {report.why_not}")
    elif report.taken is None:
        yield f"nothing new on {plain_name(report.branch)} ({count(report.in_tree, 'patch', 'patches')})"
    if report.taken is not None:
        parts = [(len(report.taken.taken), "new"), (len(report.taken.back), "back"), (len(report.taken.gone), "gone")]
        words = ", ".join(f"{number} {word}" for number, word in parts if number) or "none new"
        records = f"{count(report.taken.added, 'record')} added, {report.taken.retired} retired"
        yield f"{would}take patches: {words}; {records}" if would else f"patches: {words}; {records}"
        yield from _taken_lines(report.taken)
    for name in report.written:
        yield f"{would}write .pi/patches/{name}.json" if would else f"wrote .pi/patches/{name}.json"
    for name in report.removed:
        yield f"{would}remove .pi/patches/{name}.json" if would else f"removed .pi/patches/{name}.json"
    for file in report.made:
        yield f"{would}write {file}" if would else f"wrote {file}"
    if (report.written or report.made) and not report.dry_run:
        yield styled("commit .pi when you like; a pull request has the patch alone", "dim")
    yield from _trouble_lines(report)


def _taken_lines(taken: PatchesTaken) -> Iterator[str]:
    for line in taken.lines[:SHOWN]:
        yield from wrapped(plain(line), "    ", "  ")
    if len(taken.lines) > SHOWN:
        yield f"  and {len(taken.lines) - SHOWN:,} more: --json"
    for name, why in taken.refused:
        yield from wrapped(f"{plain_name(name)} refused: {plain(why)}", "    ", "  ")
    if taken.conflicts:
        yield f"  {count(taken.conflicts, 'conflict waits', 'conflicts wait')} for you: `memd inbox`"


def _trouble_lines(report: SyncReport) -> Iterator[str]:
    for line in (*report.malformed, *(f"patches/{name}: not read: {why}" for name, why in report.unread)):
        yield from wrapped(plain(line), "    ", "  ")
    if report.malformed:
        yield from wrapped("memory/*.jsonl stays as it is: mend these patches, or restore them from git")
    for name in report.differing:
        yield from wrapped(f"patches/{name}.json differs from this home's patch, and stays", "    ", "  ")
    if report.by_hand or report.unclear:
        yield from wrapped("memory/*.jsonl was changed by hand, and stays as it is:")
        yield from operation_lines(report.by_hand)
        yield from (line for text in report.unclear for line in wrapped(plain(text), "    ", "  "))
        yield from wrapped("`memd pi adopt` makes a patch of that; `memd pi sync --force` throws it away")
    for line in report.problems:
        yield styled(f"  {plain(line)}", "dim")


@app.command()
def check(cwd: Cwd = None, as_json: JsonFlag = False) -> None:
    """Check that memory/*.jsonl is what the patches make. It needs no daemon.

    Exit code 1: a file is not what the patches make, a patch cannot be read, or a patch was changed after it was made.

    \b
    Examples:
      memd pi check
      memd pi check --json | jq .data.stale
    """
    with CommandAnswer("pi check", as_json) as answer:
        from ..pi import pi_sync

        repository = repository_with_pi(cwd)
        _files_of(repository)
        report = pi_sync.check(repository, today())
        answer.give(report, _check_lines(report))
        if not report.is_fine:
            if as_json:
                answer.flush()
            raise typer.Exit(1)


def _check_lines(report: CheckReport) -> Iterator[str]:
    if report.is_fine:
        made = count(report.patches, "patch makes", "patches make")
        yield f"{made} {count(report.records, 'record')}: as it should be"
    for line in report.malformed:
        yield from wrapped(plain(line), "    ", "  ")
    for name in report.edited:
        yield from wrapped(f"patches/{name}.json was changed after it was made: restore it from git", "    ", "  ")
    for file in report.stale:
        yield f"{file} is not what the patches make"
    if report.by_hand or report.unclear:
        yield "somebody changed it by hand:"
        yield from operation_lines(report.by_hand)
        yield from (line for text in report.unclear for line in wrapped(plain(text), "    ", "  "))
        yield from wrapped("`memd pi adopt` makes a patch of that; `memd pi sync --force` throws it away")
    elif report.stale:
        yield "`memd pi sync` writes it, or python3 .pi/tools/pi_apply_patch.py"
    for line in report.problems:
        yield styled(f"  {plain(line)}", "dim")


@app.command()
def adopt(yes: Yes = False, cwd: Cwd = None, as_json: JsonFlag = False) -> None:
    """Make a patch of what you changed by hand in memory/*.jsonl.

    Another wording becomes a new record that supersedes the old one. The patch counts at once, as your own word.

    \b
    Examples:
      memd pi adopt
      memd pi adopt --yes --json
    """
    with CommandAnswer("pi adopt", as_json) as answer, reach(PATIENCE_MS) as client:
        from ..pi import hand_edits, pi_files, pi_sync

        repository = repository_with_pi(cwd)
        state = _readable(repository)
        ops: list[dict[str, Any]] = []
        for layer in state.stale():
            hand_edits.must_be_clear(state.current(layer), layer)
            ops += pi_sync.by_person(repository, state, layer, today())
        if not ops:
            answer.give({"ops": ()}, ["memory/*.jsonl has nothing that a person changed"])
            return
        pool = pool_of(client, cwd, bind=True)
        name, data = pi_files.patch_file(ops, "user", today())
        if not yes:
            why, hint = "adopting changes your playbook", "`memd pi check` shows it"
            agree("Make this patch?", operation_lines(ops), as_json=as_json, why=why, hint=hint)
        file = TreeFile(pi_sync.blob_of(data), "", repository.user_name(), data)
        client.take_patches(pool, [file], by_user=True, dry_run=True)
        pi_files.write_patch_file(state.folder, name, data)
        try:
            taken = client.take_patches(pool, [file], by_user=True)
        except MemdError:
            (state.folder / "patches" / f"{name}.json").unlink()
            raise
        made = pi_files.regenerate(pi_files.read_state(state.folder))
        lines = [f"wrote .pi/patches/{name}.json", *(f"wrote {file}" for file in made), *_taken_lines(taken)]
        answer.give({"patch": name, "ops": ops, "taken": taken, "made": made}, lines)


def operation_lines(ops: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Operations of a patch, one line each."""
    for operation in ops:
        name, record = operation.get("op"), operation.get("record")
        if record is not None:
            words = f"{record['id']}  {record['statement']}"
        elif name == "supersede":
            words = f"{operation['from']} by {operation['to']}"
        else:
            rest = {key: value for key, value in operation.items() if key not in ("op", "id")}
            words = f"{operation.get('id', '')}  {', '.join(f'{key} {value}' for key, value in rest.items())}"
        yield from wrapped(f"{plain_name(str(name)):<10} {plain(words)}", " " * 13, "  ")


# --- block -----------------------------------------------------------------------------------------------------------
@app.command()
def agents(
    file: Annotated[
        Path | None, typer.Option("--file", parser=path, help="The file with the block; else AGENTS.md at the top.")
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Write it, after a question.")] = False,
    personal: Annotated[
        bool, typer.Option("--personal", help="Your own identity and playbook, into ~/.claude/CLAUDE.md.")
    ] = False,
    yes: Yes = False,
    cwd: Cwd = None,
    as_json: JsonFlag = False,
) -> None:
    """Show the playbook as a block of AGENTS.md, or write it.

    The block stands between two marker lines and has at most 30 lines; everything else of the file stays. memd refuses
    a file whose markers are damaged.

    \b
    Examples:
      memd pi agents
      memd pi agents --file CLAUDE.md --write
      memd pi agents --personal --cwd ~/dotfiles --write
    """
    with CommandAnswer("pi agents", as_json) as answer:
        from ..pi import agents_block

        repository = repository_with_pi(cwd)
        state = _readable(repository)
        if personal != state.is_personal:
            hint = "`memd pi init --personal DIR` makes one" if personal else "--personal writes it for you alone"
            kind = "no folder of your own" if personal else "the folder of your own memory"
            raise InvalidRequest(f"{plain_name(str(state.folder))} is {kind}", hint=hint)
        own = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude") / "CLAUDE.md"
        named = file or (own if personal else state.folder.parent / "AGENTS.md")
        target = agents_block.target_of(named, state.folder.parent, [own] if personal else [])
        records = [record for layer in state.layers for record in state.folded.records[layer].values()]
        block = agents_block.block_of(records)
        before = target.read_bytes() if target.exists() else b""
        after = agents_block.with_block(before, block.lines)
        edited = agents_block.edited_lines(before, records)
        changes = _difference(before, after, str(named))
        data = {
            "file": str(target),
            "changes": changes,
            "left_out": block.left_out,
            "by_hand": edited,
            "written": False,
        }
        lines = [*map(plain_line, changes), *_block_notes(block.left_out, edited)]
        if not write or before == after:
            answer.give(data, lines or ["the block is as it should be"])
            return
        if not yes:
            hint = "`memd pi agents` shows the difference"
            agree("Write it?", lines, as_json=as_json, why="agents will read it", hint=hint)
            if edited:
                typer.confirm("Also over the lines that were changed by hand?", abort=True, err=True)
        _write(target, after)
        answer.give(data | {"written": True}, [f"wrote {plain_name(str(named))}"])


def plain_line(line: str) -> str:
    """A line of a difference; its leading spaces stay."""
    return line[:1] + plain(line[1:])


def _block_notes(left_out: int, edited: Sequence[str]) -> Iterator[str]:
    if left_out:
        yield from wrapped(f"{count(left_out, 'record does', 'records do')} not fit into the block")
    if edited:
        yield from wrapped(
            f"{count(len(edited), 'line')} of the block was written by hand and would go; to keep it, remember it "
            "(`memd remember`) or put it outside of the block"
        )


def _difference(before: bytes, after: bytes, name: str) -> list[str]:
    texts = [data.decode().splitlines() for data in (before, after)]
    return list(difflib.unified_diff(*texts, fromfile=name, tofile=name, lineterm="", n=1))


def _write(target: Path, content: bytes) -> None:
    from ..python.folder import write_whole

    mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
    try:
        write_whole(target, content, mode)
    except OSError as error:
        raise InvalidRequest(f"{target} cannot be written: {error.strerror}", hint="see its owner and mode") from error


# --- log -------------------------------------------------------------------------------------------------------------
@app.command()
def log(
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Patches, at most.")] = 20,
    cwd: Cwd = None,
    as_json: JsonFlag = False,
) -> None:
    """List the patches of this project, newest first.

    Each with who made it, when, what it changes, and where it stands.

    \b
    Examples:
      memd pi log
      memd pi log --limit 100 --json
    """
    with CommandAnswer("pi log", as_json) as answer, reach(PATIENCE_MS) as client:
        from ..pi.pi_sync import known_patches

        listed = known_patches(client, pool_of(client, cwd))
        rows = sorted(listed.patches, key=lambda patch: (patch.day, patch.patch), reverse=True)
        lines = [line for patch in rows[:limit] for line in patch_lines(patch)]
        lines += [f"and {len(rows) - limit:,} more: --limit"] if len(rows) > limit else []
        answer.give(listed, lines or ["this project has no patches yet"])


def patch_lines(patch: PatchState) -> Iterator[str]:
    """A patch, and what it changes."""
    by = plain_name(patch.author or patch.generated_by)
    commit = f" · {plain_name(patch.commit[:8])}" if patch.commit else ""
    when = f" · {age(patch.at)}" if patch.at else ""
    yield f"{styled(plain_name(patch.patch), 'cyan')}  {by}{commit}{when} · {_STANDINGS[patch.standing]}"
    for line in patch.lines:
        yield from wrapped(plain(line), "      ", "    ")


# --- the repository --------------------------------------------------------------------------------------------------
def today() -> str:
    """The day of a patch that is made now."""
    return date.today().isoformat()


def repository_with_pi(cwd: str | None) -> PiRepository:
    """The repository of the folder, with a `.pi`. Raises NotFound."""
    from ..pi.pi_tree import find_repository, has_pi

    repository = find_repository(here(cwd))
    if repository.folder is not None and not has_pi(repository.folder):
        raise NotFound(f"{plain_name(str(repository.folder))} has no .pi folder", hint="`memd pi init` makes one")
    return repository


def _files_of(repository: PiRepository) -> Path:
    if repository.folder is None:
        raise InvalidRequest("a bare repository has no files", hint="go to a clone of it")
    return repository.folder / ".pi"


def _readable(repository: PiRepository) -> PiFolder:
    """The state of the files. Raises InvalidRequest if a patch is malformed."""
    from ..pi.pi_files import read_state

    state = read_state(_files_of(repository))
    if state.malformed:
        raise InvalidRequest(state.malformed[0], hint="mend it, or restore it from git; `memd pi check` names all")
    return state


def pool_of(client: Client, cwd: str | None, *, bind: bool = False) -> str:
    """The pool of the folder's project, or the personal one for the folder of the user's own memory. `bind`: open the
    pool of a project for which memd captured nothing yet. Raises InvalidRequest."""
    from ..pi.pi_apply_patch import PERSONAL as MARK
    from ..pi.pi_tree import find_repository

    folder = here(cwd)
    try:
        own = find_repository(folder).folder
    except NotFound:
        own = None
    if own is not None and (own / ".pi" / MARK).exists():
        return PERSONAL
    scope = client.why_scope(folder)
    if scope.pool.startswith((UNBOUND, PERSONAL)):
        hint = "`memd scope why` tells more; `memd scope bind --new` gives it one"
        raise InvalidRequest(f"{plain_name(folder)} has no project of its own", hint=hint)
    if bind and not scope.is_open:
        return client.bind_scope(folder).pool
    return scope.pool
