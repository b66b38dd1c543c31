"""`memd hub`: pools of an organisation at a hub, for those who use them and for its administrator (H3, A1, A3).

The daemon opens no connection: this process asks the hub in the user's own session, as `memd share` runs git.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from ...protocol.errors import Denied, InvalidRequest, MemdError, NotFound, Refused
from ...protocol.hub import HubPools, PoolsAtHub, RecalledAtHub
from ...protocol.instant import from_micros
from ...protocol.share import ShareState, is_hub
from ...protocol.shared_lines import chosen_name, is_partition
from ..python.client import Client
from .connection import PATIENCE_MS, reach
from .options import here
from .output import CommandAnswer, JsonFlag, agree, plain, plain_name, styled, wrapped
from .share import (
    Cwd,
    Pool,
    carried,
    git_setting,
    known_share,
    lease_lines,
    pulled_lines,
    pushed_lines,
    scope_here,
    share_title,
)
from .wording import age, count, moment, short

if TYPE_CHECKING:
    from ..exchange.carrying import Pulled, Pushed
    from ..hub.administration import HiddenAuthor

_SECTIONS = {
    "For those who use a hub": ("join", "sync", "status", "leave"),
    "For administrators": ("install", "serve", "grant", "grants", "revoke"),
}


class HubCommandGroup(TyperGroup):
    """The commands, by audience."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for names in _SECTIONS.values() for name in names]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for title, names in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(limit=80)) for name in names])


app = typer.Typer(
    cls=HubCommandGroup,
    rich_markup_mode=None,
    add_completion=False,
    help="Share memory with an organisation, through a hub.",
    epilog="Example: `memd hub join https://hub.example.org/platform --pass-file ~/hub.pass`, then `memd hub sync`",
)

PORT = 7480
DATABASE, PASS_DAYS = "MEMD_HUB_DATABASE", 7.0
_NEVER = (
    "transcripts and quotes; names of sessions and folders; your personal memory and that of other projects; secrets"
)

Database = Annotated[
    str, typer.Option("--database", metavar="URL", envvar=DATABASE, help="The database: postgresql://USER@HOST/NAME.")
]
AtHub = Annotated[list[str], typer.Option("--pool", metavar="POOL", help="A pool at the hub; repeatable.")]


# --- those who use a hub ---------------------------------------------------------------------------------------------
@app.command()
def join(
    url: Annotated[str, typer.Argument(help="https://HOST/POOL; without a pool, only `memd recall --org` asks there.")],
    pass_file: Annotated[
        str,
        typer.Option("--pass-file", metavar="FILE", help="The file with your pass, read at each use; `-` stores one."),
    ] = "",
    name: Annotated[str, typer.Option("--name", help="How others see you; else git's `user.name`.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    pool: Pool = "",
    cwd: Cwd = None,
    as_json: JsonFlag = False,
) -> None:
    """Share this project with a pool at a hub, or renew your pass.

    Nothing leaves before you choose it with `memd share review`. What others share there is copied here and answers
    without a network, until your pass or your right ends.

    \b
    Examples:
      memd hub join https://hub.example.org/platform --pass-file ~/hub.pass
      memd hub join https://hub.example.org --pass-file ~/hub.pass    # to ask, not to share
    """
    from ..exchange.hub_client import address_of, split_address

    with CommandAnswer("hub join", as_json) as answer, reach(PATIENCE_MS) as client:
        base, at_hub = split_address(url)
        pools = _with_pass(client, base, pass_file)
        if not at_hub:
            answer.give(pools, _may_ask_lines(base, pools))
            return
        granted = next((row for row in pools.pools if row.name == at_hub), None)
        if granted is None:
            names = ", ".join(row.name for row in pools.pools)
            raise Denied(
                f"{pools.subject} has no access to {at_hub} at {base}",
                hint=f"your pass covers: {names}" if names else "ask who grants access to this hub",
            )
        address = address_of(base, at_hub)
        scope = None if pool else scope_here(client, here(cwd))
        wanted = scope.pool if scope else pool
        known = known_share(client, wanted)
        name = chosen_name(
            name or (known.name if known else "") or git_setting(here(cwd), "user.name") or pools.subject
        )
        if not yes and not (known and known.is_open and known.address == address):
            hint = "run it in a terminal to read first who can read it"
            why = "others can read what you share"
            agree("Join?", _join_lines(at_hub, base, name, granted.until), as_json=as_json, why=why, hint=hint)
        if scope and not scope.is_open:
            wanted = client.bind_scope(here(cwd)).pool
        state = client.open_share(wanted, address, name=name, mark=granted.mark)
        pulled, pushed = _synced(client, state, cwd, as_json=as_json)
        state = client.shares([state.pool]).shares[0]
        answer.give(state, _joined_lines(state, pulled, pushed))


def _with_pass(client: Client, url: str, pass_file: str) -> PoolsAtHub:
    """Ask the hub which pools the pass covers, and note the pass. Raises Denied and what the hub answers; then the pass
    of before stays."""
    from ..exchange.hub_client import HubClient, JoinedHub, joined_hub, remember_hub, store_pass

    if not pass_file:
        hub = joined_hub(client.places, url)
    elif pass_file == "-":
        if sys.stdin.isatty():
            print("Paste your pass, then press Enter:", file=sys.stderr)
        hub = JoinedHub(url=url, pass_file=str(store_pass(client.places, url, sys.stdin.readline().strip())))
    else:
        hub = JoinedHub(url=url, pass_file=str(Path(pass_file).expanduser().absolute()))
    with HubClient(hub) as at_hub:
        pools = at_hub.ask(HubPools(), PoolsAtHub)
    remember_hub(client.places, hub)
    return pools


def _may_ask_lines(url: str, pools: PoolsAtHub) -> Iterator[str]:
    yield from wrapped(f"{plain_name(pools.subject)} may ask {url}: {count(len(pools.pools), 'pool')}")
    for row in pools.pools:
        yield f"  {plain_name(row.name)}, until {moment(from_micros(row.until))}"
    yield from wrapped('`memd recall --org "QUESTION"` asks them')


def _join_lines(pool: str, url: str, name: str, until: int) -> Iterator[str]:
    yield styled(f"This project would share with {plain_name(pool)} at {url}", "bold")
    rows = [
        ("who can read it", f"everyone whom the hub grants {plain_name(pool)}, and the hub's administrators"),
        ("your name there", plain_name(name)),
        ("what goes", "only what you choose in `memd share review`"),
        ("what never goes", _NEVER),
        ("what comes", f"what others share there, readable until {moment(from_micros(until))} unless renewed"),
    ]
    for label, text in rows:
        yield from wrapped(text, " " * 18, f"  {label:<16}")


def _joined_lines(state: ShareState, pulled: Pulled, pushed: Pushed) -> Iterator[str]:
    yield from wrapped(f"{share_title(state)} is shared through {plain_name(state.address)}")
    yield from pulled_lines(pulled)
    if pushed.added or pushed.retired or pushed.gone:
        yield from pushed_lines(pushed)
    if state.undecided:
        yield from wrapped(f"choose what goes: `memd share review` ({count(state.undecided, 'record')} may go)")
    yield from wrapped("`memd hub sync` sends what you chose and gets what is new; run it from a timer of yours")


def _synced(client: Client, share: ShareState, cwd: str | None, *, as_json: bool) -> tuple[Pulled, Pushed]:
    with carried(client, share, cwd, quiet=as_json, as_json=as_json) as carry:
        return carry.pull(), carry.push()


@app.command()
def sync(
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors alone.")] = False,
    pool: Pool = "",
    as_json: JsonFlag = False,
) -> None:
    """Send what you chose, get what is new, renew your right to read.

    \b
    Examples:
      memd hub sync
      memd hub sync --quiet      # for a timer
    """
    with CommandAnswer("hub sync", as_json) as answer, reach(4 * PATIENCE_MS) as client:
        shares = _hub_shares(client, pool)
        if not shares:
            raise NotFound("no project is shared through a hub", hint="memd hub join https://HOST/POOL")
        lines: list[str] = []
        data: list[dict[str, object]] = []
        problems: list[MemdError] = []
        for share in shares:
            lines.append(styled(share_title(share), "bold"))
            try:
                pulled, pushed = _synced(client, share, None, as_json=as_json or quiet)
            except MemdError as error:  # one hub that is away keeps none of the others
                problems.append(error)
                lines += [*wrapped(plain(error.message), "  ", "  "), *wrapped(error.hint, "  ", "  ")]
                data.append({"pool": share.pool, "problem": error.message})
                continue
            lines += [f"  {line}" for line in (*pulled_lines(pulled), *pushed_lines(pushed))]
            data.append({"pool": share.pool, "pulled": pulled, "pushed": pushed})
        if len(problems) == len(shares) == 1:
            raise problems[0]
        answer.give({"projects": data}, [] if quiet and not problems else lines)
        if problems:
            answer.flush()
            raise typer.Exit(problems[0].exit_code)


def _hub_shares(client: Client, pool: str = "") -> list[ShareState]:
    shares = client.shares([pool] if pool else []).shares
    return [share for share in shares if share.is_open and is_hub(share.address)]


@app.command()
def status(as_json: JsonFlag = False) -> None:
    """Show the hubs you joined, and until when you may read.

    It needs no network.

    \b
    Example:
      memd hub status
    """
    from ..exchange.hub_client import joined_hubs

    with CommandAnswer("hub status", as_json) as answer, reach(PATIENCE_MS) as client:
        hubs, shares, left = joined_hubs(client.places), _hub_shares(client), _not_withdrawn(client)
        lines = [*_status_lines([hub.url for hub in hubs], shares), *_not_withdrawn_lines(left)]
        answer.give({"hubs": hubs, "shares": shares, "not_withdrawn": left}, lines)


def _status_lines(urls: Sequence[str], shares: Sequence[ShareState]) -> Iterator[str]:
    if not urls:
        yield from wrapped("this home has joined no hub: memd hub join https://HOST/POOL --pass-file FILE")
    for url in urls:
        yield styled(plain_name(url), "bold")
        of_hub = [share for share in shares if share.address.startswith(f"hub+{url}/")]
        if not of_hub:
            yield from wrapped("no project here shares through it; `memd recall --org` asks it", "  ", "  ")
        for share in of_hub:
            yield from _share_lines(share)


def _not_withdrawn_lines(shares: Sequence[ShareState]) -> Iterator[str]:
    for share in shares:
        words = f"{share_title(share)}: {plain_name(share.address)} still has {count(share.forgotten, 'line')} of yours"
        yield from wrapped(f"{words}; repeat `memd hub leave --withdraw` in the project's folder")


def _share_lines(share: ShareState) -> Iterator[str]:
    yield f"  {share_title(share)}, as {plain_name(share.name)} ({short(share.partition)})"
    yield from lease_lines(share, "    ")
    left = share.offered - share.delivered
    sent = f"{count(share.delivered, 'line')} at the hub" + (f", {left:,} to send" if left > 0 else "")
    yield from wrapped(f"{sent}; {count(share.waiting, 'record')} in the outbox", "    ", "    ")
    for author in (author for author in share.authors if not author.own):
        pulled = f" · got {age(author.taken_at)}" if author.taken_at else ""
        words = f"{plain_name(author.name)} ({author.partition}): {count(author.live, 'record')} shown{pulled}"
        yield from wrapped(words, "      ", "    ")
    if share.withheld:
        yield from wrapped(f"{count(share.withheld, 'author')} withheld by the hub", "    ", "    ")


@app.command()
def leave(
    url: Annotated[str, typer.Argument(metavar="[URL]", help="A hub that you only ask: https://HOST.")] = "",
    withdraw: Annotated[
        bool, typer.Option("--withdraw", help="Also take back all lines you shared, with one last push.")
    ] = False,
    pool: Pool = "",
    cwd: Cwd = None,
    as_json: JsonFlag = False,
) -> None:
    """Stop sharing this project through a hub. What others shared there can no longer be read here.

    \b
    Examples:
      memd hub leave
      memd hub leave --withdraw
      memd hub leave https://hub.example.org    # a hub that you only ask
    """
    from ..exchange.hub_client import drop_hub, split_address

    with CommandAnswer("hub leave", as_json) as answer, reach(PATIENCE_MS) as client:
        if url:
            base = _leave_asked(client, url, withdraw=withdraw)
            answer.give({"hub": base}, wrapped(f"{plain_name(base)} is asked no more, and memd has no pass for it"))
            return
        scope = None if pool else scope_here(client, here(cwd))
        share = known_share(client, scope.pool if scope else pool)
        if share is None or not is_hub(share.address):
            raise NotFound("this project is not shared through a hub", hint="`memd hub status` lists those that are")
        state = client.close_share(share.pool, withdraw=withdraw)
        lines = wrapped(f"{share_title(state)} is no longer shared; others keep what they have")
        try:
            if withdraw:
                with carried(client, state, cwd, as_json=as_json) as carry:
                    lines = [f"{share_title(state)} is withdrawn", *pushed_lines(carry.push())]
        except MemdError as error:
            error.message = f"the hub still has your lines: {error.message}"
            error.hint = _NOT_WITHDRAWN
            raise
        finally:  # a push renews the lease
            state = client.note_lease(share.pool, "", 0)
        base = split_address(share.address)[0]
        if not _uses(client, base):
            drop_hub(client.places, base)
        answer.give(state, lines)


_NOT_WITHDRAWN = (
    "sharing has ended, and what others share there can't be read here any more; repeat `memd hub leave --withdraw` to"
    " take your lines back (if the hub refuses your pass, get a new one first: memd hub join URL --pass-file FILE)"
)


def _uses(client: Client, url: str) -> bool:
    """Whether a project is shared through a hub, or still has to be withdrawn from it."""
    shares = (*_hub_shares(client), *_not_withdrawn(client))
    return any(share.address.startswith(f"hub+{url}/") for share in shares)


def _not_withdrawn(client: Client) -> list[ShareState]:
    """Return the projects whose lines a hub still has although the user withdrew them."""
    shares = client.shares([]).shares
    return [share for share in shares if is_hub(share.address) and share.withdrawn and share.forgotten]


def _leave_asked(client: Client, url: str, *, withdraw: bool) -> str:
    """Forget a hub that no project is shared through; return its URL. Raises InvalidRequest, Denied."""
    from ..exchange.hub_client import drop_hub, joined_hub, split_address

    base, at_hub = split_address(url)
    joined_hub(client.places, base)
    if at_hub or withdraw or _uses(client, base):
        raise InvalidRequest(
            f"{base} carries a project, or its pool is named",
            hint="in the project's folder, `memd hub leave` stops sharing it; a hub that you only ask has no pool here",
        )
    drop_hub(client.places, base)
    return base


# --- asking ----------------------------------------------------------------------------------------------------------
def org_recall(client: Client, query: str, limit: int, answer: CommandAnswer) -> dict[str, RecalledAtHub]:
    """Ask all hubs of this home; return their answers by URL, and warn of each that does not answer."""
    from ..exchange.hub_client import joined_hubs, recall_at

    hubs = joined_hubs(client.places)
    if not hubs:
        raise NotFound("this home has joined no hub", hint="memd hub join https://HOST --pass-file FILE")
    embedded = client.vectors([query])
    answers: dict[str, RecalledAtHub] = {}
    for hub in hubs:
        try:
            answers[hub.url] = recall_at(hub, query, embedded, limit)
        except MemdError as error:
            answer.warn(f"{hub.url} was left out: {error.message}")
    return answers


def org_lines(answers: dict[str, RecalledAtHub]) -> Iterator[str]:
    """The answers of hubs as text."""
    for url, recalled in answers.items():
        yield ""
        yield styled(f"at {plain_name(url)}", "bold")
        for number, hit in enumerate(recalled.hits, 1):
            yield from wrapped(plain(hit.text), "   ", f"{number}. ")
            said = f" · {hit.said}" if hit.said else ""
            disputed = " · another author says that this is wrong" if hit.disputed else ""
            words = f"{plain_name(hit.author)} in {plain_name(hit.pool)}{said}{disputed} · signature not checked"
            yield from (styled(line, "dim") for line in wrapped(words, "   ", "   "))
        if not recalled.hits:
            yield "nothing found"
        if recalled.late:
            yield from wrapped(f"left out, because the search took too long: {', '.join(recalled.late)}")


# --- administrators --------------------------------------------------------------------------------------------------
@contextmanager
def _installed() -> Generator[None]:
    """Turn a missing library into an error that says how to install it. Raises Refused."""
    try:
        yield
    except ImportError as error:
        raise Refused("memd was installed without the hub", hint="pip install 'memd[hub]'") from error


def _database(url: str) -> str:
    if not url:
        raise InvalidRequest("which database?", hint=f"--database postgresql://USER@HOST/NAME, or set {DATABASE}")
    return url


@app.command()
def install(database: Database = "", as_json: JsonFlag = False) -> None:
    """Install the hub into an existing PostgreSQL, or update it.

    The user in the URL may create roles, schemas and the extension `vector`. Run it once, and after each update of
    memd.

    \b
    Example:
      memd hub install --database postgresql://postgres@db.example.org/memd
    """
    with CommandAnswer("hub install", as_json) as answer, _installed():
        from ..hub.database import GATEWAY_ROLE
        from ..hub.database import install as install_hub

        version, password = install_hub(_database(database))
        data = {"version": version, "role": GATEWAY_ROLE, "password": password}
        answer.give(data, _installed_lines(version, GATEWAY_ROLE, password))


def _installed_lines(version: int, role: str, password: str) -> Iterator[str]:
    yield f"the database has version {version} of the hub's tables"
    if password:
        yield from wrapped(f"the gateway connects as {role} with this password, which is not shown again:")
        yield f"  {password}"
    yield from wrapped("next: `memd hub grant SUBJECT --pool NAME --new-pool --key issuer.key`, then `memd hub serve`")


@app.command()
def serve(
    keys: Annotated[
        str, typer.Option("--keys", metavar="FOLDER", help="Public keys (*.pem) of those who issue passes.")
    ],
    database: Database = "",
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on.")] = PORT,
    certificate: Annotated[str, typer.Option(metavar="FILE", help="The TLS certificate, PEM.")] = "",
    private_key: Annotated[str, typer.Option(metavar="FILE", help="The key of the certificate, PEM.")] = "",
    connections: Annotated[int, typer.Option(min=1, max=32, help="Database connections, at most.")] = 8,
) -> None:
    """Run a gateway of the hub. It has no state: run as many as you like.

    \b
    Examples:
      memd hub serve --keys /etc/memd/keys --database postgresql://memd_gateway@db.example.org/memd
      memd hub serve --keys /etc/memd/keys --host 0.0.0.0 --certificate hub.pem --private-key hub.key
    """
    with CommandAnswer("hub serve", as_json=False), _installed():
        from ..hub.gateway_server import Listening
        from ..hub.gateway_server import serve as serve_hub

        logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
        tls = [Path(file) if file else None for file in (certificate, private_key)]
        listening = Listening(host, port, *tls)
        scheme = "https" if listening.is_encrypted else "http"

        def announce() -> None:
            print(f"memd hub listens on {scheme}://{host}:{port} with {connections} connections", flush=True)

        serve_hub(_database(database), Path(keys), listening, connections, announce)


@app.command()
def grant(
    subject: Annotated[str, typer.Argument(help="Who: the name that the pass has.")],
    pool: AtHub,
    key: Annotated[
        str, typer.Option("--key", metavar="FILE", help="The private key that signs passes; made if it is missing.")
    ] = "",
    days: Annotated[float, typer.Option(min=0.001, max=3650, help="How long the grant and the pass hold.")] = PASS_DAYS,
    new_pool: Annotated[bool, typer.Option("--new-pool", help="Make pools that do not exist.")] = False,
    database: Database = "",
    as_json: JsonFlag = False,
) -> None:
    """Let somebody use pools, and issue the pass with --key.

    With an identity layer of your own, let it write memd.grants and sign passes (docs/HUB.md).

    \b
    Example:
      memd hub grant ada --pool platform --new-pool --key issuer.key > ada.pass
    """
    with CommandAnswer("hub grant", as_json) as answer, _installed():
        from ..hub import administration

        url, until = _database(database), administration.until_after(days)
        if key and Path(key).exists():
            administration.signing_key(Path(key))  # a wrong file is told before anything is granted
        now = administration.grant(url, subject, pool, until, new_pools=new_pool)
        signer, is_new = administration.signing_key(Path(key)) if key else (None, False)
        token = administration.issue(signer, subject, pool, until, now) if signer else ""
        public = str(administration.public_file(Path(key))) if is_new else ""
        if public:
            answer.warn(f"made the key {key}; copy {public} into the folder of `memd hub serve --keys`")
        data = {"subject": subject, "pools": pool, "until": until.isoformat(timespec="seconds"), "pass": token}
        data["public_key"] = public
        answer.give(data, [token] if token else [f"{subject} may use {', '.join(pool)} until {data['until']}"])


@app.command()
def grants(database: Database = "", as_json: JsonFlag = False) -> None:
    """List who may use which pool until when, and hidden authors.

    \b
    Example:
      memd hub grants
    """
    with CommandAnswer("hub grants", as_json) as answer, _installed():
        from ..hub import administration

        url = _database(database)
        rows, hidden = administration.grants(url), administration.hidden(url)
        data = [{"subject": row.subject, "pool": row.pool, "until": row.until.isoformat()} for row in rows]
        lines = [f"{plain_name(row.subject)}  {row.pool}  until {moment(row.until.isoformat())}" for row in rows]
        lines = lines or ["nobody may use any pool: memd hub grant SUBJECT --pool POOL"]
        fields = ("partition", "subject", "name", "pool")
        told = [{**{name: getattr(row, name) for name in fields}, "at": row.at.isoformat()} for row in hidden]
        answer.give({"grants": data, "hidden": told}, [*lines, *_hidden_lines(hidden)])


def _hidden_lines(authors: Sequence[HiddenAuthor]) -> Iterator[str]:
    if authors:
        yield styled("hidden from everybody", "bold")
    for row in authors:
        place = f" in {row.pool}" if row.pool else ""
        who = f"{plain_name(row.name)}, put by {plain_name(row.subject)}{place}" if row.subject else "no lines here"
        yield f"{row.partition}  {who}  since {moment(row.at.isoformat())}"


@app.command()
def revoke(
    who: Annotated[str, typer.Argument(help="A subject, or a partition whose lines nobody is to see.")],
    pool: Annotated[list[str] | None, typer.Option("--pool", help="Only in this pool; repeatable.")] = None,
    lines: Annotated[bool, typer.Option("--lines", help="Also hide what the subject shared there.")] = False,
    back: Annotated[bool, typer.Option("--back", help="Show a partition again.")] = False,
    database: Database = "",
    as_json: JsonFlag = False,
) -> None:
    """End somebody's access, or hide an author. It holds from the next request on.

    Passes that the subject got before stay ended, also after a new grant.

    \b
    Examples:
      memd hub revoke bert
      memd hub revoke bert --lines             # also what bert shared
      memd hub revoke 5k2m…partition --back    # show an author again
    """
    with CommandAnswer("hub revoke", as_json) as answer, _installed():
        from ..hub import administration

        url = _database(database)
        if back or is_partition(who):
            is_changed = administration.withhold(url, who, back=back)
            what = "is shown again" if back else "is hidden from everybody"
            answer.give({"partition": who, "changed": is_changed}, [f"{who} {what}"])
            return
        ended = administration.revoke_subject(url, who, pool or ())
        partitions = administration.partitions_of(url, who, pool or ()) if lines else []
        for partition in partitions:
            administration.withhold(url, partition)
        if not ended and not partitions:
            raise NotFound(f"{who} has no grant that could end", hint="`memd hub grants` lists them")
        words = f"{count(ended, 'grant')} of {plain_name(who)} ended"
        hidden = f", {count(len(partitions), 'author key')} hidden" if lines else ""
        answer.give({"subject": who, "grants": ended, "partitions": partitions}, [words + hidden])
