"""`memd agent`: agents with a memory of their own."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from ...protocol.agent_outcomes import OUTCOME_WORDS, AgentOutcomes, AgentRanking, Rating
from ...protocol.courses import AgentState, AskedQuestion, CoursesAsked, CourseTaught
from ...protocol.errors import InvalidRequest, Unavailable
from ...protocol.record import LIVE
from ...protocol.reply import PoolList
from ..python.client import Client
from .connection import PATIENCE_MS, reach
from .output import CommandAnswer, JsonFlag, plain, plain_name, shortened, styled, width
from .progress import Ticker
from .school_page import school_html, school_lines, standing
from .wording import count, moment

AGENT_HOSTS = frozenset(("claude-code", "codex", "pi", "gemini-cli"))

app = typer.Typer(rich_markup_mode=None, add_completion=False)
agent_app = typer.Typer(rich_markup_mode=None, add_completion=False, invoke_without_command=True)
app.add_typer(agent_app, name="agent")

Name = Annotated[str, typer.Argument(help="The agent's name in its sessions.")]
READ_S, POLL_S = 120.0, 0.2
"""Seconds that a command waits until new sections can be found, and between two looks."""

WRONG = 10
"""Questions without an answer that a test names."""


@agent_app.callback()
def agents(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List agents with a memory; create, teach or rank them.

    \b
    Examples:
      memd agent
      memd agent add reviewer --role "reviews pull requests" -p security -p cost
      memd agent teach reviewer handbook.md
      memd agent rank "find the slow query"
      memd recall "what went wrong in reviews" --agent reviewer
    """
    if context.invoked_subcommand:
        return
    with CommandAnswer("agent", as_json) as answer, reach() as client:
        agents = PoolList(pools=tuple(pool for pool in client.pools().pools if pool.pool.startswith("agent/")))
        answer.give(agents, _agent_lines(agents))


@agent_app.command()
def add(
    name: Name,
    role: Annotated[str, typer.Option(help="Its role, in a few words.")] = "",
    perspective: Annotated[
        list[str] | None,
        typer.Option("--perspective", "-p", help="A concern of the agent, with keywords if you like; repeatable."),
    ] = None,
    prompt: Annotated[
        str, typer.Option("--prompt", help="File with its system prompt, kept as it is; - reads standard input.")
    ] = "",
    as_json: JsonFlag = False,
) -> None:
    """Create an agent's memory, or change its role and perspectives.

    From then on memd stores what the agent says in its own memory, and what you say in yours. A recall under a
    perspective also searches its keywords.

    \b
    Example:
      memd agent add reviewer --role "reviews pull requests" -p security -p cost
      memd agent add reviewer -p "security: cve, auth, token" -p "cost: price, quota"
      memd agent add reviewer --prompt reviewer.txt
    """
    with CommandAnswer("agent add", as_json) as answer, reach() as client:
        agent = client.open_agent(name, role=role, perspectives=perspective or (), prompt=_prompt_of(prompt))
        outcome = "now has its own memory" if agent.new else "changed"
        concerns = f"; perspectives: {', '.join(map(plain, agent.perspectives))}" if agent.perspectives else ""
        kept = "; memd keeps its prompt" if agent.has_prompt else ""
        answer.give(agent, [f"{styled(plain_name(agent.pool), 'bold')} {outcome}{concerns}{kept}"])


@agent_app.command()
def show(
    name: Name,
    prompt: Annotated[bool, typer.Option("--prompt", help="Print its system prompt alone, as it was given.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show an agent's role, perspectives and courses, or its system prompt.

    \b
    Examples:
      memd agent show reviewer
      memd agent show reviewer --prompt
    """
    with CommandAnswer("agent show", as_json) as answer, reach() as client:
        agent = client.agent(name)
        if prompt and not agent.prompt:
            raise InvalidRequest(f"memd has no prompt of {name}", hint=f"memd agent add {name} --prompt FILE")
        if prompt and not as_json:
            sys.stdout.buffer.write(agent.prompt.encode())
            sys.stdout.flush()
        else:
            answer.give(agent, _agent_lines_of(agent))


@agent_app.command()
def teach(
    name: Name,
    course: Annotated[Path, typer.Argument(help="A Markdown or YAML file; docs/AGENTS.md shows the form.")],
    as_json: JsonFlag = False,
) -> None:
    """Teach an agent a handbook, and test what its memory has of it.

    The sections of the file become records of the agent's own memory, as they stand there. memd asks the file's
    questions before and after, and again after 1, 3, 7, 14, 30 and more days. The same file again changes nothing; a
    changed file replaces the changed sections.

    \b
    Example:
      memd agent teach baker handbook.md
    """
    from ..importers.course_file import read_course  # late: the Markdown parser takes 20 ms

    with CommandAnswer("agent teach", as_json) as answer, reach(PATIENCE_MS) as client:
        read = read_course(course)
        taught = client.teach(name, read.title, read.chapters)
        asked = _ask(client, name, answer)
        answer.give({"taught": taught, "test": asked}, [*_taught_lines(taught), *_asked_lines(asked)])


@agent_app.command()
def test(name: Name, as_json: JsonFlag = False) -> None:
    """Ask an agent's memory the questions of its courses that are due now.

    A question is answered right if all keywords of its answer stand in what a recall gives within 600 tokens. memd
    asks by itself too, while it runs.

    \b
    Example:
      memd agent test baker
    """
    with CommandAnswer("agent test", as_json) as answer, reach(PATIENCE_MS) as client:
        asked = _ask(client, name, answer)
        answer.give(asked, _asked_lines(asked))


@agent_app.command()
def school(
    name: Name,
    html: Annotated[Path | None, typer.Option("--html", help="Write the curves into this HTML file.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show what courses brought an agent, test by test, and its open gaps.

    \b
    Examples:
      memd agent school baker
      memd agent school baker --html school.html
    """
    with CommandAnswer("agent school", as_json) as answer, reach(PATIENCE_MS) as client:
        told = client.school(name)
        if html is None:
            answer.give(told, school_lines(told))
            return
        try:
            html.write_text(school_html(told), encoding="utf-8")
        except OSError as error:
            raise InvalidRequest(f"{html} can't be written: {error.strerror}", hint="name another file") from error
        answer.give(told, [f"wrote {plain(str(html))}"])


@agent_app.command()
def close(
    name: Name,
    course: Annotated[str, typer.Argument(help="The title of the course, or its beginning.")],
    as_json: JsonFlag = False,
) -> None:
    """Close a course: memd asks no more of it, and its sections fade if unused.

    \b
    Example:
      memd agent close baker "Linden Bakery"
    """
    with CommandAnswer("agent close", as_json) as answer, reach(PATIENCE_MS) as client:
        closed = client.close_course(name, course)
        answer.give(closed, [f"{styled(plain(closed.title), 'bold')} · {standing(closed)}"])


def _prompt_of(name: str) -> str:
    """Return the text of a prompt file. Raises InvalidRequest."""
    if not name:
        return ""
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        prompt = content.decode()
    except OSError as error:
        raise InvalidRequest(f"{name} can't be read: {error.strerror}", hint="name a text file") from error
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{name} is not valid UTF-8: {error.reason}", hint="save it as UTF-8") from error
    if not prompt.strip():
        raise InvalidRequest("the prompt is empty", hint="name a file with the prompt")
    return prompt


def _ask(client: Client, name: str, answer: CommandAnswer) -> CoursesAsked:
    """Ask what is due once new sections can be found. Raises Unavailable."""
    end = time.monotonic() + READ_S
    with Ticker(answer.as_json) as ticker:
        while not (asked := client.ask_courses(name)).is_read:
            if time.monotonic() > end:
                raise Unavailable("memd still reads the course", hint=f"later: `memd agent test {name}`")
            ticker.tell("memd reads the course")
            time.sleep(POLL_S)
    return asked


def _taught_lines(taught: CourseTaught) -> Iterator[str]:
    parts = [f"{count(taught.added, 'new passage')}", f"{taught.kept} kept"]
    parts += [f"{taught.gone} gone"] if taught.gone else []
    parts += [f"{taught.forgotten} that you forgot left out"] if taught.forgotten else []
    yield f"{styled(plain(taught.title), 'bold')} · {', '.join(parts)} · {count(taught.questions, 'question')}"
    if taught.asked:
        yield f"before: {taught.right} of {taught.asked} new questions answered"


def _asked_lines(asked: CoursesAsked) -> Iterator[str]:
    if not asked.asked:
        yield "no question is due"
        return
    wrong: list[AskedQuestion] = [question for question in asked.asked if not question.right]
    yield f"test: {len(asked.asked) - len(wrong)} of {len(asked.asked)} questions answered"
    for question in wrong[:WRONG]:
        yield f"  not answered · {plain(question.chapter)}: {plain(question.question)}"
    if len(wrong) > WRONG:
        yield f"  and {len(wrong) - WRONG} more"


def _agent_lines_of(agent: AgentState) -> Iterator[str]:
    role = f" · {plain_name(agent.role)}" if agent.role else ""
    yield f"{styled(plain_name(agent.pool), 'bold')}{role} · {count(agent.records, 'record')}"
    for perspective in agent.perspectives:
        yield f"  perspective · {plain(perspective)}"
    if agent.prompt:
        yield f"  prompt · {count(len(agent.prompt), 'character')}; `--prompt` prints it"
    for course in agent.courses:
        yield f"  course · {plain(course.title)} · {standing(course)}"


@agent_app.command()
def why(
    name: Annotated[str, typer.Argument(help="The agent's name in its sessions, or its host.")],
    as_json: JsonFlag = False,
) -> None:
    """Show what became of an agent's tasks.

    Each has the words that gave it. memd sees how many new lines the agent took away again within three turns, what
    you stopped or refused, and what was asked again. It stores no word of a task.

    \b
    Example:
      memd agent why Explore
    """
    with CommandAnswer("agent why", as_json) as answer, reach() as client:
        outcomes = client.explain_agent(name)
        answer.give(outcomes, _outcome_lines(outcomes))


@agent_app.command()
def judge(
    name: Annotated[str, typer.Argument(help="The agent's name.")],
    session: Annotated[str, typer.Argument(help="SESSION or SESSION:TURN; without a turn its last task there.")],
    outcome: Annotated[Rating | None, typer.Option("--outcome", help="as-is, minor, major, redo or failed.")] = None,
    perspective: Annotated[str, typer.Option("--perspective", "-p", help="The concern that you judged.")] = "",
    take_back: Annotated[bool, typer.Option("--take-back", help="Forget what you said of this task.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Say what became of a task. Your word counts in place of what memd saw.

    \b
    Examples:
      memd agent judge Explore 4d5611e5 --outcome as-is
      memd agent judge Explore 4d5611e5:toolu_012nL --outcome redo -p cost
      memd agent judge Explore 4d5611e5 --take-back
    """
    if (outcome is None) != take_back:
        raise typer.BadParameter("give --outcome, or --take-back")
    with CommandAnswer("agent judge", as_json) as answer, reach() as client:
        document, turn = _task_named(session)
        outcomes = client.rate_task(name, document, turn, outcome=outcome or "", perspective=perspective)
        answer.give(outcomes, _outcome_lines(outcomes))


@agent_app.command()
def rank(
    task: Annotated[str, typer.Argument(help="The task, in your words.")],
    agents: Annotated[str, typer.Option("--agents", help="Only these, separated by commas.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Rank agents for a task.

    Their roles count, and what became of similar tasks. memd ranks; you or the agent's host choose.

    \b
    Examples:
      memd agent rank "find the slow query"
      memd agent rank "find the slow query" --agents Explore,Plan
    """
    names = [name.strip() for name in agents.split(",") if name.strip()]
    with CommandAnswer("agent rank", as_json) as answer, reach() as client:
        ranking = client.rank_agents(task, names)
        answer.give(ranking, _rank_lines(ranking))


def _task_named(session: str) -> tuple[str, str]:
    """Return the session and the turn of `SESSION[:TURN]`; a session may begin with its host."""
    host, colon, rest = session.partition(":")
    if host in AGENT_HOSTS and colon:
        name, _, turn = rest.partition(":")
        return f"{host}:{name}", turn
    return host, rest


def _outcome_lines(outcomes: AgentOutcomes) -> Iterator[str]:
    if not outcomes.outcomes:
        yield "memd saw no task of it that it can judge"
    for each in outcomes.outcomes:
        by = " (you)" if each.by == "user" else ""
        concern = f" · {plain(each.perspective)}" if each.perspective else ""
        yield f"{moment(each.at)}  {each.weight:+.1f}  {styled(OUTCOME_WORDS[each.outcome], 'bold')}{by}{concern}"
        yield f"  {plain(each.document)}:{plain(each.turn)}"
        yield f"  {shortened(plain(each.task), width() - 2) if each.task else '(its words are gone)'}"


def _rank_lines(ranking: AgentRanking) -> Iterator[str]:
    if not ranking.agents:
        yield "no agent has a memory or an outcome; to create one: `memd agent add NAME`"
    for each in ranking.agents:
        basis = "by role only" if not each.n else "mostly by role" if each.by_role else ""
        seen = f"{count(each.n, 'similar task')} (counting as {each.n_eff:.1f})" if each.n else ""
        running = f"{each.running} running" if each.running else ""
        recent = f"recently {each.recent:+.1f}" if each.recent else ""
        facts = " · ".join(filter(None, (basis, seen, recent, running)))
        name = styled(plain_name(each.agent), "bold")
        yield f"{each.score:4.0%}  {name}  80 %: {each.low:.0%} to {each.high:.0%} · {facts}"


def _agent_lines(agents: PoolList) -> Iterator[str]:
    if not agents.pools:
        yield "no agent has its own memory; to create one: `memd agent add NAME`"
    for agent in agents.pools:
        held = count(sum(agent.counts.get(status, 0) for status in LIVE), "record")
        role = f" · {plain_name(agent.role)}" if agent.role else ""
        concerns = f" · {', '.join(map(plain, agent.perspectives))}" if agent.perspectives else ""
        yield f"{styled(plain_name(agent.pool), 'bold')}{role}{concerns} · {held}"
