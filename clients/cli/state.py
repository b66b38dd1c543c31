"""`memd state`: where a project stands: what is open, decided, watched, and the last sessions (C1)."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from ...protocol.errors import InvalidRequest
from ...protocol.state import CurrentState, Rewording, StateItem
from .connection import reach
from .options import Cwd, here
from .output import CommandAnswer, JsonFlag, plain, plain_name, styled, wrapped
from .wording import age, pool_name

app = typer.Typer(rich_markup_mode=None, add_completion=False, invoke_without_command=True)
Agent = Annotated[str, typer.Option(help="The state of this agent's own memory, instead of the project's.")]
Texts = Annotated[list[str], typer.Argument(help="The item, in one line; several make several items.")]

HEADINGS = {"open": "Open", "decisions": "Decided lately", "watch": "Watch", "sessions": "Last sessions"}
_HEADING = re.compile(r"##\s*(Open|Watch)\s*$", re.IGNORECASE)
_LINE = re.compile(r"[-*]\s*(?P<text>.*?)\s*(?:\[(?P<id>[tu][0-9a-f]{8})\])?\s*$")


@app.callback()
def state(
    context: typer.Context,
    cwd: Cwd = None,
    agent: Agent = "",
    edit: Annotated[bool, typer.Option("--edit", help="Change open and watched items in $EDITOR.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show where the project stands: what is open and decided.

    Open items come from the plans and the ends of sessions; an item leaves when a session completes it, or when the
    next session that changes something goes on without it. What you add stays until you close it.

    \b
    Examples:
      memd state
      memd state --edit
      memd state add "migrate the billing tables"
      memd state watch "the nightly build is flaky"
      memd state close u1a2b3c4
    """
    if context.invoked_subcommand:
        context.obj = (cwd, agent)
        return
    with CommandAnswer("state", as_json) as answer, reach() as client:
        shown = client.state(cwd=here(cwd), agent=agent)
        if edit and (changes := _edited(shown)) is not None:
            try:
                shown = client.change_state(
                    cwd=here(cwd),
                    agent=agent,
                    add=changes.add,
                    watch=changes.watch,
                    close=changes.close,
                    reword=changes.reword,
                    if_rev=shown.rev,
                )
            except InvalidRequest as error:
                before, now = changes.text.splitlines(), _text(client.state(cwd=here(cwd), agent=agent)).splitlines()
                difference = "\n".join(unified_diff(now, before, "now", "yours", lineterm=""))
                raise InvalidRequest(f"{error.message}; nothing was changed:\n{difference}", hint=error.hint) from error
        answer.give(shown, _lines(shown))


@app.command()
def add(context: typer.Context, texts: Texts, as_json: JsonFlag = False) -> None:
    """Add open items. They stay until you close them.

    \b
    Example:
      memd state add "migrate the billing tables"
    """
    _change("state add", context, as_json, add=texts)


@app.command()
def watch(context: typer.Context, texts: Texts, as_json: JsonFlag = False) -> None:
    """Add items to watch. They stay until you close them.

    \b
    Example:
      memd state watch "the nightly build is flaky"
    """
    _change("state watch", context, as_json, watch=texts)


@app.command()
def close(
    context: typer.Context,
    ids: Annotated[list[str], typer.Argument(help="Ids as `memd state` shows them, or unique prefixes.")],
    as_json: JsonFlag = False,
) -> None:
    """Close open or watched items.

    \b
    Example:
      memd state close u1a2b3c4
    """
    _change("state close", context, as_json, close=ids)


def _change(
    name: str,
    context: typer.Context,
    as_json: bool,
    *,
    add: Sequence[str] = (),
    watch: Sequence[str] = (),
    close: Sequence[str] = (),
) -> None:
    cwd, agent = context.obj or (None, "")
    with CommandAnswer(name, as_json) as answer, reach() as client:
        changed = client.change_state(cwd=here(cwd), agent=agent, add=add, watch=watch, close=close)
        answer.give(changed, _lines(changed))


def _lines(shown: CurrentState) -> Iterator[str]:
    yield styled(plain_name(shown.title) or pool_name(shown.pool), "bold")
    for section, heading in HEADINGS.items():
        items = [item for item in shown.items if item.section == section]
        if not items:
            continue
        yield styled(heading, "bold")
        for item in items:
            mark = item.id if section in {"open", "watch"} else item.id[:8] if section == "decisions" else ""
            yield from wrapped(f"{_words(item)}  {styled(_origin(item, mark), 'dim')}", "    ", "  - ")
        if more := shown.hidden.get(section):
            yield styled(f"    and {more:,} older", "dim")
    if not shown.items:
        yield "nothing yet: sessions in this folder fill it, and `memd state add` adds an item"


def _words(item: StateItem) -> str:
    text = plain(item.text)
    if item.by == "check":
        return f"{text} {item.note}"
    return f"{item.note}: {text}" if item.note else text


def _origin(item: StateItem, mark: str) -> str:
    since = age(item.since) if item.since and item.since[:10] != item.at[:10] else age(item.at)
    where = plain_name(item.document) if item.by == "session" else mark
    return f"[{', '.join(part for part in (where, since) if part)}]"


# --- the editor -------------------------------------------------------------------------------------------------------
class _Changes(NamedTuple):
    text: str
    add: list[str]
    watch: list[str]
    close: list[str]
    reword: list[Rewording]


def _text(shown: CurrentState) -> str:
    """The text that the user edits."""
    lines = ["# One item a line. Remove a line to close the item, change its words, or add a line without an id."]
    for section in ("open", "watch"):
        lines += ["", f"## {HEADINGS[section]}"]
        lines += [f"- {plain(item.text)} [{item.id}]" for item in shown.items if item.section == section]
    return "\n".join(lines) + "\n"


def _edited(shown: CurrentState) -> _Changes | None:
    """Let the user edit the text; None without a change. Raises InvalidRequest."""
    before = _text(shown)
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="memd-") as folder:  # nobody else may read it
        file = Path(folder) / "state.md"
        file.write_text(before, encoding="utf-8")
        try:
            done = subprocess.run([*shlex.split(editor), str(file)], check=False)
            after = file.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            hint = "set EDITOR to one that works here"
            raise InvalidRequest(f"the editor {editor!r} failed: {error}", hint=hint) from error
    if done.returncode:
        raise InvalidRequest(f"the editor {editor!r} ended with {done.returncode}: nothing was changed")
    return None if after == before else _changes(shown, after)


def _changes(shown: CurrentState, after: str) -> _Changes:
    """Return what an edited text changes. Raises InvalidRequest for a line that is no item."""
    old = {item.id: plain(item.text) for item in shown.items if item.section in {"open", "watch"}}
    changes, kept, section = _Changes(after, [], [], [], []), set[str](), "open"
    for number, line in enumerate(after.splitlines(), 1):
        if heading := _HEADING.match(line):
            section = heading[1].lower()
        elif line.strip() and not line.startswith("#"):
            item = _LINE.match(line.strip())
            if item is None or not item["text"]:
                raise InvalidRequest(f"line {number} is no item: {line[:60]!r}", hint="write it as `- words`")
            if item["id"] not in old:
                (changes.watch if section == "watch" else changes.add).append(item["text"])
                continue
            kept.add(item["id"])
            if item["text"] != old[item["id"]]:
                changes.reword.append(Rewording(item["id"], item["text"]))
    changes.close.extend(id for id in old if id not in kept)
    return changes
