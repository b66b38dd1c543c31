"""What courses brought an agent, for the terminal and as an HTML page that loads nothing (O3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from ...protocol.courses import ChapterState, CourseState, School, TestScore, share_known
from .output import plain, plain_name, styled
from .wording import count, moment

_BARS = "▁▂▃▄▅▆▇█"
GAPS = 20
"""Open gaps of a course that the terminal shows."""

TESTS = 4
"""Latest tests of a chapter that the terminal spells out."""

WIDTH, HEIGHT, LEFT, TOP = 640, 180, 36, 14
"""Size of a chart in pixels, and its margins."""

_STYLE = """
:root { color-scheme: light dark; --ink: #1d1c1a; --paper: #faf8f4; --dim: #625e56; --line: #e5e0d6; --own: #1f6f5c }
@media (prefers-color-scheme: dark) {
  :root { --ink: #eeeae2; --paper: #151412; --dim: #aba498; --line: #312e29; --own: #7cc7ae }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 46rem; margin: 2rem auto; padding: 0 1.2rem }
h1 { font-size: 1.5rem; margin-bottom: .2rem } h2 { font-size: 1.15rem; margin: 1.8rem 0 .2rem }
h3 { font-size: 1rem; margin: 1.2rem 0 0 } p { color: var(--dim); margin: 0 }
svg { width: 100%; height: auto } svg text { fill: var(--dim); font: 11px system-ui, sans-serif }
.grid { stroke: var(--line) } .curve { fill: none; stroke: var(--own); stroke-width: 2 } circle { fill: var(--own) }
li { overflow-wrap: anywhere }
"""


def school_lines(school: School) -> Iterator[str]:
    """Yield what each course brought."""
    if not school.courses:
        yield f"{plain_name(school.agent)} has no course; to teach one: `memd agent teach {school.agent} FILE`"
    for course in school.courses:
        yield from _course_lines(course)


def _course_lines(course: CourseState) -> Iterator[str]:
    yield f"{styled(plain(course.title), 'bold')} · {standing(course)}"
    longest = max((len(plain(chapter.title)) for chapter in course.chapters), default=0)
    for chapter in course.chapters:
        curve = "".join(_BARS[round(_share(test) * (len(_BARS) - 1))] for test in chapter.tests)
        tests = " · ".join(map(_told, chapter.tests[-TESTS:])) or "no test yet"
        yield f"  {plain(chapter.title):<{longest}}  {curve}  {tests}"
    for gap in course.gaps[:GAPS]:
        keywords = ", ".join(map(plain, gap.keywords))
        yield f"  gap · {plain(gap.chapter)}: {plain(gap.question)} ({keywords})"
    if len(course.gaps) > GAPS:
        yield f"  and {count(len(course.gaps) - GAPS, 'more gap')}; `--json` has all"


def standing(course: CourseState) -> str:
    """Return in words how many questions of a course the memory answers, and when the next are asked."""
    known = sum(chapter.tests[-1].known for chapter in course.chapters if chapter.tests)
    total = sum(chapter.questions for chapter in course.chapters)
    if not course.is_open:
        return f"closed, {known} of {total} questions answered at the last tests"
    if course.due:
        return f"{known} of {total} questions answered; due now: {course.due}"
    following = f"; the next test is on {moment(course.next)}" if course.next else ""
    return f"{known} of {total} questions answered{following}"


def _told(test: TestScore) -> str:
    name = test.test if test.test != "review" else moment(test.at)[:10]
    return f"{name} {test.right}/{test.asked}"


def _share(test: TestScore) -> float:
    return test.known / test.questions if test.questions else 0.0


def school_html(school: School) -> str:
    """Return the page."""
    return "\n".join(_html(school)) + "\n"


def _html(school: School) -> Iterator[str]:
    name = escape(plain(school.agent))
    yield f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>School of {name}</title>'
    yield f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>'
    yield f"<h1>School of {name}</h1>"
    yield "<p>The share of each chapter's questions whose last answer was right, test by test.</p>"
    for course in school.courses:
        yield f"<h2>{escape(plain(course.title))}</h2><p>{escape(standing(course))}</p>"
        for chapter in course.chapters:
            share = round(share_known(chapter.tests) * 100)
            yield f"<h3>{escape(plain(chapter.title))}: {share} %</h3>"
            yield chart(chapter) if chapter.tests else "<p>no test yet</p>"
        if course.gaps:
            yield "<h3>Open gaps</h3><ul>"
            for gap in course.gaps:
                keywords = escape(", ".join(map(plain, gap.keywords)))
                yield f"<li>{escape(plain(gap.chapter))}: {escape(plain(gap.question))} ({keywords})</li>"
            yield "</ul>"
    yield "</body></html>"


def chart(chapter: ChapterState) -> str:
    """Return the curve of a chapter as SVG."""
    tests = chapter.tests
    places = [(_across(n, tests), _up(_share(test))) for n, test in enumerate(tests)]
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(plain(chapter.title))}">']
    for share in (0.0, 0.5, 1.0):
        y = _up(share)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - 8}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="0" y="{y + 4:.1f}">{round(share * 100)} %</text>')
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    parts.append(f'<polyline class="curve" points="{points}"/>')
    for (x, y), test in zip(places, tests, strict=True):
        title = f"{test.test}, {moment(test.at)}: {test.right} of {test.asked} asked; {test.known} of {test.questions}"
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{escape(title)}</title></circle>')
    for (x, _), test in list(zip(places, tests, strict=True))[:: max(1, len(tests) // 6)]:
        label = test.test if test.test != "review" else moment(test.at)[:10]
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 4}" text-anchor="middle">{label}</text>')
    return "".join([*parts, "</svg>"])


def _across(number: int, tests: Sequence[TestScore]) -> float:
    first, last = LEFT + 34, WIDTH - 42
    return first + (last - first) * number / max(1, len(tests) - 1)


def _up(share: float) -> float:
    return TOP + (1 - share) * (HEIGHT - TOP - 26)
