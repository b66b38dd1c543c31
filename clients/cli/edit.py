"""Commands that change single records: remember, edit, correct, pin, unpin, restore."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from ...protocol.errors import InvalidRequest
from ...protocol.profile import changed_lines
from ...protocol.record import PRINCIPLE
from ...protocol.scope import check_agent
from ..python.client import session_here
from .connection import deliver, reach
from .options import Cwd, DryRun, Id, here, instant
from .output import CommandAnswer, JsonFlag, plain, plain_name, styled, wrapped
from .wording import artifacts, count, facts, judged_lines, learnings, pool_name, reviewed, row, short

if TYPE_CHECKING:
    from ...protocol.record import Record
    from ...protocol.reply import Remembered
    from ..python.client import Client

PERSONAL = "personal"
POLL_S = 0.02
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
TERMINAL_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0

app = typer.Typer(rich_markup_mode=None, add_completion=False)
Ids = Annotated[list[str], typer.Argument(help="Records by id, or a unique prefix.")]
WOULD = "nothing changed; without --dry-run it would be so"


@app.command()
def remember(
    text: Annotated[str, typer.Argument(help="The statement; - reads standard input.")],
    cwd: Cwd = None,
    personal: Annotated[bool, typer.Option("--personal", help="Save it in your personal pool.")] = False,
    project: Annotated[bool, typer.Option("--project", help="Save it in the folder's project.")] = False,
    pool: Annotated[str | None, typer.Option("--pool", help="Save it in this pool, as `memd pools` names it.")] = None,
    evidence: Annotated[
        list[str] | None,
        typer.Option("--evidence", metavar="PATH|URL|COMMIT", help="What proves it; repeatable."),
    ] = None,
    agent: Annotated[str, typer.Option(help="Save it as a statement of this agent, in its own memory.")] = "",
    wait: Annotated[
        bool | None,
        typer.Option("--wait/--no-wait", help="Wait for the final record; default: a second, at a terminal."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Remember a statement. `memd recall` finds it at once.

    Without --personal, --project or --pool, a statement about you goes to your personal pool, and one about the work to
    the folder's project. memd decides that moments later; with --wait the answer shows the final pool, text and type.

    \b
    Examples:
      memd remember "I prefer spaces for indentation."
      memd remember "We deploy on Tuesdays." --cwd ~/src/orchard
      memd remember --personal "I review the parser on Fridays."
      memd remember --pool orchard "The staging server is called heron."
      memd remember "We deploy on Tuesdays." --evidence docs/deploy.md
      memd remember --agent reviewer "The parser tests are slow."
      memd remember "Postgres is also called the ledger."    # a question with either name finds both
      git log -1 --format=%B | memd remember - --wait --json
    """
    from ..python.spool_writer import SpoolReceipt

    with CommandAnswer("remember", as_json) as answer, reach() as client:
        words, named = _text(text), _named(personal, project, pool)
        proofs = [_reference(ref) for ref in evidence or ()]
        if agent:
            check_agent(agent, (), (opened.pool for opened in client.pools().pools))
        remembered = client.remember_or_spool(
            words,
            cwd=_folder(cwd),
            host="cli",
            role="assistant" if agent else "user",
            pool=named,
            session="" if cwd else session_here(),
            agent=agent,
        )
        if isinstance(remembered, SpoolReceipt):
            answer.give(remembered, [f"spooled ({remembered.reason}); memd will process it when it is running again"])
            if proofs:
                answer.warn("the evidence was not saved; add it later with `memd evidence ID`")
            return
        if proofs:
            try:
                proven = client.add_evidence(remembered.record.id, proofs).record
                remembered = msgspec.structs.replace(remembered, record=proven)
            except InvalidRequest as error:  # the statement itself is kept
                answer.warn(f"the evidence was not saved: {error.message}; {error.hint}")
        at_terminal = sys.stdout.isatty() and not as_json
        if wait or (wait is None and at_terminal):
            remembered = _refined(client, remembered, LONGEST_WAIT_S if wait else TERMINAL_WAIT_S)
            if wait and not remembered.record.provenance.distiller:
                answer.warn(f"the record is not final after {LONGEST_WAIT_S} s; `memd status` shows why")
        answer.give(remembered, _remembered_lines(remembered))
        deliver(client, answer)


def _named(personal: bool, project: bool, pool: str | None) -> str:
    """The pool that the options name, "" for none. Raises InvalidRequest."""
    if pool == "":
        raise InvalidRequest("the pool's name is empty", hint="`memd pools` lists them")
    named = [*([PERSONAL] if personal else []), *(["project"] if project else []), *([pool] if pool else [])]
    if len(named) > 1:
        raise InvalidRequest("more than one pool was named", hint="use one of --personal, --project and --pool NAME")
    return named[0] if named else ""


def _refined(client: Client, remembered: Remembered, longest_s: float) -> Remembered:
    """The reply with the record as the worker left it, or as it is after `longest_s` seconds."""
    end = time.monotonic() + longest_s
    while not remembered.record.provenance.distiller and time.monotonic() < end:
        time.sleep(POLL_S)
        remembered = msgspec.structs.replace(remembered, record=client.get(remembered.record.id))
    is_open = remembered.pool_open and not remembered.record.provenance.distiller
    return msgspec.structs.replace(remembered, pool_open=is_open)


def _folder(cwd: str | None) -> str:
    """The project's folder. Raises InvalidRequest if it does not exist: its name alone would open a pool."""
    folder = here(cwd)
    if not os.path.isdir(folder):
        raise InvalidRequest(f"{folder} is not a folder", hint="name the project's folder, or omit --cwd")
    return folder


def _text(text: str) -> str:
    words = sys.stdin.read() if text == "-" else text
    if not words.strip():
        raise InvalidRequest("there is nothing to remember", hint='give a statement: memd remember "I prefer tabs."')
    return words.strip()


def _remembered_lines(remembered: Remembered) -> Iterator[str]:
    record = remembered.record
    yield from wrapped(plain(record.description))
    text = f"{'already known · ' if remembered.duplicate else ''}{facts(record)} · revision {record.rev}"
    where = "pool chosen soon, by its subject" if remembered.pool_open else pool_name(record.pool)
    yield f"{styled(short(record.id), 'cyan')} · {text} · {where}"
    if remembered.pool_open:
        yield styled(f"`memd show {short(record.id)}` tells the pool; `memd remember --wait` waits for it", "dim")
    if record.superseded_by:
        yield f"memd keeps {short(record.superseded_by)}, which says the same"


@app.command()
def edit(
    id: Id,
    text: Annotated[str, typer.Argument(help="The new wording; - reads standard input.")],
    dry_run: DryRun = False,
    as_json: JsonFlag = False,
) -> None:
    """Reword a record. Its id stays, and `memd why` shows the earlier wording.

    \b
    Example:
      memd edit 7q3hjwch "I prefer two spaces for indentation."
    """
    with CommandAnswer("edit", as_json) as answer, reach() as client:
        words = _text(text)
        before = client.get(id)
        remembered = client.edit(before.id, words, dry_run=dry_run)
        lines = list(_remembered_lines(remembered))
        if dry_run:
            lines += [*_profile_lines(client, before, (remembered.record,)), WOULD]
        elif not remembered.duplicate:
            lines.append(f"to undo this: memd undo {plain_name(remembered.record.provenance.spans[0].document)}")
        answer.give(remembered, lines)
        deliver(client, answer)


@app.command()
def correct(
    old: Annotated[str, typer.Argument(help="The wrong record's id, or a unique prefix.")],
    new: Annotated[str, typer.Argument(help="The correct statement, as a whole sentence.")],
    since: Annotated[
        str, typer.Option(help="End of the old record's validity: a day, or RFC 3339; default: it was never valid.")
    ] = "",
    dry_run: DryRun = False,
    as_json: JsonFlag = False,
) -> None:
    """Replace a wrong record with a correct statement. The old record is retired and stays in the history.

    A correction of an open question decides it. To change only the wording, use `memd edit`.

    \b
    Examples:
      memd correct 7q3hjwch "The team deploys on Thursdays."
      memd correct 7q3hjwch "The team deploys on Fridays." --since 2026-03-01
    """
    with CommandAnswer("correct", as_json) as answer, reach() as client:
        before = client.get(old) if dry_run else None
        corrected = client.correct(old, new, since=instant(since), dry_run=dry_run)
        record = corrected.record
        replaced = short(record.supersedes[0]) if record.supersedes else old
        lines = [f"{styled(short(record.id), 'cyan')} replaces {replaced}", plain(record.description)]
        if before:
            lines += [
                *_profile_lines(client, before, (msgspec.structs.replace(before, status="retired"), record)),
                WOULD,
            ]
        else:
            lines.append(f"to undo this: memd undo {plain_name(record.provenance.spans[0].document)}")
        answer.give(corrected, lines)


def _profile_lines(client: Client, before: Record, after: Sequence[Record]) -> Iterator[str]:
    """What the profile of this folder loses and gets with a change of one record."""
    then, now = (client.profile(cwd=here(None), assuming=records) for records in ((before,), after))
    gone, new = changed_lines(then, now)
    yield f"profile here: {count(len(gone), 'line')} less, {count(len(new), 'line')} more"
    yield from (styled(f"  {plain(line)}", "red") for line in gone)
    yield from (styled(f"  {plain(line)}", "green") for line in new)


@app.command()
def pin(
    ids: Ids,
    principle: Annotated[bool, typer.Option("--principle", help="Also include them in every answer.")] = False,
    playbook: Annotated[
        bool, typer.Option("--playbook", help="Of your own: a rule for every project, not who you are.")
    ] = False,
    dry_run: DryRun = False,
    as_json: JsonFlag = False,
) -> None:
    """Pin records: they come first in the profile. No later statement retires a pinned record without your consent.

    Pinning confirms an unconfirmed record. So does stating it yourself, or rewording it.

    You can pin 40 records about yourself, 300 in the playbook of each project and of your own, and 20 principles.

    \b
    Examples:
      memd pin 7q3hjwch
      memd pin 7q3hjwch --principle
      memd list --type preference    # shows ids
    """
    _pin("pin", ids, True, as_json, principle, playbook, dry_run)


@app.command()
def unpin(ids: Ids, dry_run: DryRun = False, as_json: JsonFlag = False) -> None:
    """Unpin records.

    \b
    Example:
      memd unpin 7q3hjwch
    """
    _pin("unpin", ids, False, as_json, dry_run=dry_run)


Undo = Annotated[bool, typer.Option("--undo", help="Take it back: restore the state before.")]


@app.command()
def confirm(ids: Ids, undo: Undo = False, dry_run: DryRun = False, as_json: JsonFlag = False) -> None:
    """Confirm records: they are right. memd then believes them; a pin also puts them first.

    \b
    Examples:
      memd confirm 7q3hjwch
      memd confirm 7q3hjwch --undo
      memd list --status unconfirmed
    """
    _judge("confirm", ids, right=True, undo=undo, dry_run=dry_run, as_json=as_json)


@app.command()
def reject(ids: Ids, undo: Undo = False, dry_run: DryRun = False, as_json: JsonFlag = False) -> None:
    """Reject records: they are wrong, and nothing replaces them. They stay in the history.

    To state what is right instead, use `memd correct`; to leave no byte behind, `memd forget`.

    \b
    Examples:
      memd reject 7q3hjwch
      memd reject 7q3hjwch --undo
    """
    _judge("reject", ids, right=False, undo=undo, dry_run=dry_run, as_json=as_json)


def _judge(command: str, ids: list[str], *, right: bool, undo: bool, dry_run: bool, as_json: bool) -> None:
    with CommandAnswer(command, as_json) as answer, reach() as client:
        judged = client.confirm(ids, right=right, undo=undo, dry_run=dry_run)
        answer.give(judged, (line for record in judged.records for line in judged_lines(record, dry_run)))


def _pin(
    command: str,
    ids: list[str],
    pinned: bool,
    as_json: bool,
    principle: bool = False,
    playbook: bool = False,
    dry_run: bool = False,
) -> None:
    with CommandAnswer(command, as_json) as answer, reach() as client:
        changed = [
            client.pin(client.get(id).id, pinned, principle=principle, playbook=playbook, dry_run=dry_run) for id in ids
        ]
        answer.give(changed, (line for remembered in changed for line in _pin_lines(remembered, pinned)))


def _pin_lines(remembered: Remembered, pinned: bool) -> Iterator[str]:
    record = remembered.record
    yield from wrapped(plain(record.description))
    if pinned:
        outcome = "already pinned" if remembered.duplicate else "pinned"
        outcome += " as a principle" if PRINCIPLE in record.tags else ""
    else:
        outcome = "not pinned" if remembered.duplicate else "unpinned"
    yield f"{styled(short(record.id), 'cyan')} · {outcome} · {pool_name(record.pool)}"
    if remembered.dry_run:
        yield WOULD


@app.command()
def review(
    id: Id,
    every: Annotated[
        int | None, typer.Option("--every", help="Days between two reviews; 0 for the default.", metavar="DAYS")
    ] = None,
    if_: Annotated[
        str | None,
        typer.Option("--if", help="What would change it; memd counts sessions, days and projects.", metavar="TEXT"),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Set when to look at a record again, and what would change it.

    Without options the command shows both. memd lowers the confidence of a record whose review is overdue, and
    proposes a record in `memd inbox` when its condition is met. It counts a condition such as "3 sessions" or "2
    projects"; it only shows other words.

    \b
    Examples:
      memd review 7q3hjwch --every 90
      memd review 7q3hjwch --if "2 projects deviate"
      memd review 7q3hjwch --every 0 --if ""
    """
    with CommandAnswer("review", as_json) as answer, reach() as client:
        remembered = client.plan_review(client.get(id).id, every_days=every, change_condition=if_)
        answer.give(remembered, _review_lines(remembered.record))


def _review_lines(record: Record) -> Iterator[str]:
    yield from wrapped(plain(record.description))
    yield f"{styled(short(record.id), 'cyan')} · {reviewed(record) or 'reviewed as usual for its kind'}"


@app.command()
def evidence(
    id: Id,
    refs: Annotated[
        list[str] | None, typer.Argument(metavar="[PATH|URL|COMMIT]...", help="What proves the record.")
    ] = None,
    note: Annotated[str, typer.Option(help="What it shows, in a few words.")] = "",
    remove: Annotated[bool, typer.Option("--remove", help="Remove these instead.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show what proves a record, or add files and commits.

    A web address is evidence as well, and so is a part of a document. memd keeps the reference; of a file also a hash,
    so that `memd links` tells later whether the file or the part changed.

    \b
    Examples:
      memd evidence 7q3hjwch
      memd evidence 7q3hjwch docs/decisions/0007.md --note "the decision and its reasons"
      memd evidence 7q3hjwch 1a2b3c4d https://example.org/issue/7
      memd evidence 7q3hjwch "docs/why.md#Reasons"
      memd evidence 7q3hjwch 1a2b3c4d --remove
    """
    with CommandAnswer("evidence", as_json) as answer, reach() as client:
        record = client.get(id)
        if refs:
            named = [_reference(ref, is_removed=remove) for ref in refs]
            record = client.add_evidence(record.id, named, note=note, remove=remove).record
        answer.give(record, _evidence_lines(record))


def _reference(ref: str, *, is_removed: bool = False) -> str:
    """An address, a commit, or the absolute path of a file, perhaps with a heading. Raises InvalidRequest for a file
    that does not exist."""
    if ref.startswith(("http://", "https://")) or (_COMMIT.fullmatch(ref) and not os.path.exists(ref)):
        return ref
    file, mark, heading = _divided(ref)
    if not is_removed and not os.path.exists(file):
        raise InvalidRequest(
            f"{ref} is no file, address or commit",
            hint="name an existing file, https://…, or at least 7 digits of a hash",
        )
    return os.path.abspath(file) + mark + heading


def _divided(ref: str) -> tuple[str, str, str]:
    """Divide a reference before a heading: "docs/why.md", "#", "Reasons"; (ref, "", "") if it names none."""
    ends = [at for at, character in enumerate(ref) if character == "#"] if not os.path.exists(ref) else []
    end = next((at for at in reversed(ends) if os.path.isfile(ref[:at])), ends[0] if ends else len(ref))
    is_divided = os.path.isfile(ref[:end]) or ref[:end].lower().endswith((".md", ".markdown"))
    return (ref[:end], ref[end : end + 1], ref[end + 1 :]) if is_divided else (ref, "", "")


def _evidence_lines(record: Record) -> Iterator[str]:
    yield from wrapped(plain(record.description))
    yield f"{styled(short(record.id), 'cyan')} · {count(len(record.artifacts), 'artifact')}"
    for line in artifacts(record):
        yield from wrapped(line, "    ", "  ")


@app.command()
def learn(
    id: Id,
    text: Annotated[str, typer.Argument(help="What the record teaches; - reads standard input.")] = "",
    perspective: Annotated[
        str, typer.Option("--perspective", "-p", help="The concern of an agent for which it teaches this.")
    ] = "",
    remove: Annotated[bool, typer.Option("--remove", help="Remove what it teaches for the perspective.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Note what a record teaches for one concern of an agent. A recall under that perspective shows it.

    \b
    Examples:
      memd learn 7q3hjwch -p security "Rotate the token after each incident."
      memd learn 7q3hjwch -p security --remove
      memd recall "incident" --perspective security
    """
    with CommandAnswer("learn", as_json) as answer, reach() as client:
        if not perspective:
            raise InvalidRequest(
                "no perspective was named", hint="add -p NAME; `memd agent` shows those of your agents"
            )
        if remove and text:
            raise InvalidRequest("--remove takes no text", hint="omit the text, or omit --remove")
        remembered = client.learn(client.get(id).id, perspective, "" if remove else _text(text))
        answer.give(remembered, _learning_lines(remembered.record))


def _learning_lines(record: Record) -> Iterator[str]:
    yield from wrapped(plain(record.description))
    yield f"{styled(short(record.id), 'cyan')} · {learnings(record) or 'teaches nothing for a perspective'}"


@app.command()
def restore(
    ids: Annotated[list[str], typer.Argument(help="Archived records, by id or a unique prefix.")],
    as_json: JsonFlag = False,
) -> None:
    """Restore archived records.

    \b
    Example:
      memd restore 7q3hjwch
    """
    with CommandAnswer("restore", as_json) as answer, reach() as client:
        restored = client.restore(ids)
        left = (
            [f"{count(restored.left, 'record')} not restored: not archived, or another record has the same key"]
            if restored.left
            else []
        )
        answer.give(restored, [*(row(record) for record in restored.records), *left])
