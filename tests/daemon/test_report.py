"""The weekly report: each section from real captures, the same for the same journal and week, and its borders (G6)."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec
import pytest

from memd.clients.cli.report import html, markdown
from memd.clients.python.client import Client
from memd.daemon.config import Config
from memd.daemon.projections.stores import Stores
from memd.daemon.services.core import core_of
from memd.daemon.services.report.iso_week import week_at, week_named
from memd.daemon.services.report.report_service import ReportService, ReportSources
from memd.daemon.services.service import Caller
from memd.models import registry
from memd.protocol.corrections import Inbox
from memd.protocol.document_links import LinkList
from memd.protocol.errors import Denied, InvalidRequest
from memd.protocol.event import AnyEvent, Checked, Committed, Origin, Said, SessionEnded, ToolCalled, Wrote
from memd.protocol.fading import Count, Counted, Reviewed
from memd.protocol.instant import from_micros, micros
from memd.protocol.operation import Invalidated, PatchApplied, PatchStep
from memd.protocol.places import places
from memd.protocol.weekly_report import UNDECIDED, GetReport, SectionName, WeeklyReport
from tests.conftest import RunningDaemon
from tests.daemon.living import Running, added

NOW = datetime.now(UTC)
SOON = timedelta(seconds=1)


THINGS = (
    "amber lamp|cello|drill|easel|flute|globe|harp|inkwell|jigsaw|kettle|ladder|mirror|needle|oboe|piano|quilt|rake|"
    "saddle|tuba|umbrella|violin|wagon|xylofon|yoke|zither"
).split("|")


def at(second: int) -> str:
    return (NOW + second * SOON).isoformat()


def lines(told: WeeklyReport, name: SectionName) -> list[str]:
    """The texts of a section, none if the report leaves it out."""
    return [line.text for section in told.sections if section.name == name for line in section.lines]


def worked(client: Client, folder: Path) -> None:
    """A session that worked: two edits, a commit, and something that it left open."""
    origin = Origin(host="claude-code", session="pears", cwd=str(folder))
    arguments = '{"file_path":"/home/ada/orchard/src/pears.py"}'
    events: list[AnyEvent] = [
        Said(turn="u1", at=at(1), role="user", text="Please look at the pear table, it is slow since yesterday."),
        ToolCalled(turn="e2", at=at(2), name="Edit", arguments=arguments, outcome="ok"),
        ToolCalled(turn="e3", at=at(3), name="Edit", arguments=arguments, outcome="ok"),
        Committed(turn="g4", at=at(4), id="0a1b2c3", subject="pears: an index for the query", files=2),
        Checked(turn="c5", at=at(5), what="npm run build", state="failed"),
        Wrote(turn="todo", at=at(6), text="- update the lock file of the orchard", form="open"),
        SessionEnded(turn="end", at=at(7)),
    ]
    client.capture(origin, events)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "orchard"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def test_each_section_tells_who_did_what_G6(daemon: RunningDaemon, folder: Path) -> None:
    with daemon.client() as client:
        worked(client, folder)
        old = client.remember("I prefer tabs for indentation.", cwd=str(folder)).record
        cello = client.remember("The cello is in the green shed.").record
        pear = client.remember("The pear table has an index on the harvest day.").record
        daemon.settle()
        client.correct(old.id, "I prefer spaces for indentation.")
        client.confirm([pear.id], right=False)
        [proposal] = client.propose_forget([cello.id], "Claude Code").ids
        client.feedback(used=[cello.id])
        daemon.settle()
        told = client.report()
        again = client.report(told.week)
    [ask] = lines(told, "needs")
    assert ask == "Claude Code asks to delete “The cello is in the green shed.” for good"
    [needs] = [section for section in told.sections if section.name == "needs"]
    assert needs.lines[0].command == f"memd inbox accept {proposal[:8]}" and needs.lines[0].ids == (proposal,)
    beliefs = lines(told, "beliefs")
    assert beliefs[0].startswith("memd learnt ") and "about you" in beliefs[0]
    assert any(
        line.startswith("You said “I prefer spaces") and "which replaces “I prefer tabs" in line for line in beliefs
    )
    assert not any("cello" in line for line in beliefs), "the question above tells it"
    assert list(markdown(told)).count(UNDECIDED) == 1 and "<code>memd inbox reject ID</code>" in html(told)
    assert "You said that “The pear table has an index on the harvest day.” is wrong" in beliefs
    work = lines(told, "work")
    assert work[0] == "orchard (no project): 1 session, 1 commit, 2 open", work
    assert work[1].startswith("claude-code worked on “pears: an index for the query” until ")
    assert work[1].endswith(", 2 edits"), "the commit is the title"
    assert "open: update the lock file of the orchard" in work and "open: npm run build failed" in work
    assert "Agents used “The cello is in the green shed.” once" in lines(told, "used")
    assert msgspec.msgpack.encode(again.sections) == msgspec.msgpack.encode(told.sections)


def test_the_present_week_is_that_of_the_local_day_and_another_one_is_empty_G6(home: dict[str, str]) -> None:
    far = ZoneInfo("Pacific/Kiritimati")  # 14 hours ahead of UTC
    running = RunningDaemon({**home, "TZ": "Pacific/Kiritimati"})
    running.start()
    try:
        with running.client() as client:
            client.remember("The cello is in the green shed.")
            told, empty = client.report(), client.report("1999-W01")
            with pytest.raises(InvalidRequest, match="is not a week"):
                client.report("2025-W53")
    finally:
        running.terminate()
    year, week, _ = datetime.now(far).isocalendar()
    assert told.week == f"{year}-W{week:02}" and told.since.endswith("T00:00:00+14:00")
    assert lines(told, "beliefs"), "the record is of the present week"
    assert empty.sections == () and len(list(markdown(empty))) == 1
    assert next(markdown(empty)) == "# Week 1999-W01, 4–10 January 1999: nothing happened, and nothing needs you."


@pytest.mark.parametrize(
    ("name", "opens", "closes", "zone"),
    [
        ("2026-W01", "2025-12-29T00:00:00+00:00", "2026-01-05T00:00:00+00:00", "UTC"),  # it begins in the year before
        ("2020-W53", "2020-12-28T00:00:00+00:00", "2021-01-04T00:00:00+00:00", "UTC"),  # a year with 53 weeks
        ("2026-W43", "2026-10-19T00:00:00+02:00", "2026-10-26T00:00:00+01:00", "Europe/Berlin"),  # summer time ends
        ("2026-W13", "2026-03-23T00:00:00-07:00", "2026-03-30T00:00:00-07:00", "America/Los_Angeles"),
    ],
)
def test_a_week_ends_where_the_next_one_begins_in_each_zone_G6(name: str, opens: str, closes: str, zone: str) -> None:
    place = ZoneInfo(zone)
    week = week_named(name, place)
    assert (week.opens, week.closes) == (opens, closes)
    assert week_named(week.after, place).opens == closes and week_named(week.before, place).closes == opens
    moments = (week.since - 1, week.since, week.until - 1, week.until)
    assert [week_at(moment, place) for moment in moments] == [week.before, name, name, week.after]


@pytest.mark.parametrize(
    "name", ["", "2026", "2026-W00", "2026-W54", "2025-W53", "2026-W1", "9999-W52", "0001-W01", "٢٠٢٦-W47"]
)
def test_what_is_no_week_is_refused_G6(name: str) -> None:
    with pytest.raises(InvalidRequest):
        week_named(name)


class ReportHome(Running):
    """Stores under a clock that a test sets, with the report alone."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "data")
        self._folder = folder
        self._serve()

    def restart(self) -> None:
        """Close the stores, and fold the journal into fresh tables."""
        self.stores.close()
        shutil.rmtree(self._folder / "data" / "projections")
        self.stores = Stores(self._folder / "data", self.world, registry.info())
        self._serve()

    def _serve(self) -> None:
        folder = self._folder
        environment = {"MEMD_HOME": str(folder), "HOME": str(folder)}
        core = core_of(self.stores, places(environment, 1000), Config, self.world)
        nothing = LinkList(links=(), checked=0, left=0)
        sources = ReportSources(
            inbox=lambda: Inbox(proposals=(), open=0),
            work=lambda since, until, caller: (),
            links=lambda ids, caller: nothing,
            fading=lambda pools, days, most: [],
        )
        self.service = ReportService(core, sources)

    def at(self, text: str) -> None:
        self.now = micros(text)

    def report(self, week: str = "") -> WeeklyReport:
        return self.service.report(GetReport(week=week), Caller())


@pytest.fixture
def living(tmp_path: Path) -> Iterator[ReportHome]:
    home = ReportHome(tmp_path)
    yield home
    home.close()


def test_an_operation_is_in_the_week_in_which_memd_committed_it_G6(living: ReportHome) -> None:
    monday = datetime(2026, 1, 5).astimezone()
    ends = [monday - timedelta(days=7), monday, monday + timedelta(days=7)]
    for number, (begins, following) in enumerate(pairwise(ends)):
        living.now = micros(begins.isoformat())
        living.stores.commit([added(10 * number, learned_at=living.now)])
        living.now = micros(following.isoformat()) - 9
        last = 10 * number + 1
        living.stores.commit([added(last, learned_at=living.now)])
        living.stores.commit([Invalidated(id=f"id{last}", valid_to=from_micros(living.now), reason="it has moved")])
    living.now = micros(ends[-1].isoformat())
    living.stores.commit([added(99, learned_at=living.now)])
    for number, week in enumerate(("2026-W01", "2026-W02")):
        told = lines(living.report(week), "beliefs")
        assert told[0] == "memd learnt 2 statements: 2 about you; 1 record was replaced or retired"
        assert told[1] == f"memd retired “The fact number {10 * number + 1} is a long one.”: it has moved"
        assert f"You said “The fact number {10 * number} is a long one.”" in told and len(told) == 3
    assert living.report().week == "2026-W03" and len(lines(living.report(), "beliefs")) == 2


def test_patches_reviews_and_uses_of_a_week_G6(living: ReportHome) -> None:
    steps = (PatchStep(op="add", id="id0", layer="L2"),)
    living.stores.commit([added(number) for number in range(4)])
    living.stores.commit(
        [
            PatchApplied(
                pool="personal", patch="patch_20270115_9f3k2m1q", day="2027-01-15", generated_by="curator", steps=steps
            ),
            Reviewed(id="id1", confidence=0.4, next="2027-03-01T00:00:00Z", why="overdue"),
            Counted(
                pool="personal", counts={"id2": Count(uses=3), "id3": Count(candidates=5), "id0": Count(candidates=2)}
            ),
        ]
    )
    told = living.report()
    assert "You accepted patch_20270115_9f3k2m1q of the curator: 1 change of the playbook of your own memory" in lines(
        told, "beliefs"
    )
    assert lines(told, "old") == [
        "memd trusts 1 record less, because nobody confirmed it in time: “The fact number 1 is a long one.”"
    ]
    assert lines(told, "used") == [
        "Agents used “The fact number 2 is a long one.” 3 times",
        "Agents were given “The fact number 3 is a long one.” 5 times and never used it",
    ]


def test_a_report_is_the_same_after_a_replay_and_at_another_time_of_the_week_G6(
    living: ReportHome, tmp_path: Path
) -> None:
    living.at("2027-01-12T09:00:00Z")
    living.stores.commit([added(number, learned_at=living.now) for number in range(30)])
    living.stores.commit([Counted(pool="personal", counts={f"id{number}": Count(uses=number) for number in range(9)})])
    first = msgspec.json.encode(living.report())
    living.at("2027-01-14T21:00:00Z")
    assert msgspec.json.encode(living.report()) == first
    living.restart()
    assert msgspec.json.encode(living.report()) == first


def test_a_full_report_has_at_most_60_lines_and_html_loads_nothing_G6(daemon: RunningDaemon, folder: Path) -> None:
    hostile = "I prefer <img src=x onerror=alert(1)> and <script>alert(1)</script> [x](http://example.org) in Go."
    with daemon.client() as client:
        worked(client, folder)
        records = [client.remember(f"The {name} is in the attic.").record for name in THINGS]
        client.remember(hostile)
        daemon.settle()
        client.propose_forget([record.id for record in records[:9]], "<b>Claude</b>")
        for record, name in zip(records[10:], THINGS[10:], strict=True):
            client.correct(record.id, f"The {name} is in the green shed.")
        client.feedback(used=[record.id for record in records[:9]])
        daemon.settle()
        told = client.report()
    text, page = list(markdown(told)), html(told)
    assert len(text) <= 60 and "## Needs you (4 lines more)" in text
    assert not any("<script" in line.replace("\\<", "") or "<img" in line.replace("\\<", "") for line in text)
    assert not re.search(r"<(script|img|link|iframe|object|a|base|form)\b", page)
    assert "default-src 'none'" in page and not re.search(r"""(src|href)=["']|url\(|@import""", page)
    assert "prefers-color-scheme: dark" in page and page.count("<section") == len(told.sections)


def test_a_document_that_changed_gets_old_G6_C3(daemon: RunningDaemon, folder: Path) -> None:
    notes = folder / "NOTES.md"
    notes.write_text(
        "# Tools\n\n- We always sharpen the pruning saws on the first Monday of March.\n", encoding="utf-8"
    )
    command = ["-m", "memd.clients.cli.main", "import", "markdown", str(notes)]
    run(daemon, folder, *command)
    daemon.settle()
    with daemon.client() as client:
        assert not any("NOTES.md" in line for line in lines(client.report(), "old"))
        notes.write_text("# Tools\n\n- We also own two ladders.\n", encoding="utf-8")
        told = client.report()
    assert any(f"{notes} has changed since memd learnt" in line for line in lines(told, "old")), told


def run(daemon: RunningDaemon, folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-P", *arguments],
        env=daemon.environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_the_command_prints_and_writes_the_report_G6(daemon: RunningDaemon, folder: Path) -> None:
    with daemon.client() as client:
        client.remember("The cello is in the green shed.")
        week = client.report().week
    memd = ("-m", "memd.clients.cli.main", "report")
    assert run(daemon, folder, *memd).startswith(f"# Week {week}, ")
    assert '"sections":[' in run(daemon, folder, *memd, "--json")
    page = folder / "week.html"
    assert run(daemon, folder, *memd, "--html", "--out", str(page), "--week", week) == f"wrote {page}\n"
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_pass_gets_no_report_G6_A1(daemon: RunningDaemon) -> None:
    with daemon.client() as client:
        token = client.grant("a tool").token
    with Client(daemon.places, token=token) as reader, pytest.raises(Denied):
        reader.report()
