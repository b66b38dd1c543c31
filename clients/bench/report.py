"""A report: measured parts and their machine, as JSON and as Markdown. It names no user and no folder."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from ... import __version__
from ...protocol.errors import InvalidRequest, NotFound
from .measurement import Figure, PartResult

FORMAT = 1
ROOT = Path(__file__).resolve().parents[2]
_HOW = "`memd bench --save FILE` makes one"


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine's size. `cores`: those that this process may use."""

    system: str
    processor: str
    cores: int
    memory_gb: float
    python: str

    def __str__(self) -> str:
        size = f"{self.cores} cores, {self.memory_gb:g} GB"
        return f"{self.processor}, {size}, {self.system}, Python {self.python}"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    format: int = FORMAT
    machine: Machine
    parts: tuple[PartResult, ...]

    @property
    def held(self) -> list[Figure]:
        return [figure for part in self.parts for figure in part.figures if figure.met is not None]

    @property
    def missed(self) -> list[tuple[PartResult, Figure]]:
        """The figures that miss their target, each with its part."""
        return [(part, figure) for part in self.parts for figure in part.missed]


# --- this machine ----------------------------------------------------------------------------------------------------
def machine() -> Machine:
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    except (ValueError, OSError):
        memory = 0.0
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return Machine(
        system=f"{platform.system()} {platform.release().split('-')[0]}",
        processor=next(models, "") or platform.processor() or platform.machine(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory_gb=round(memory, 1),
        python=platform.python_version(),
    )


def version() -> str:
    """memd's version, and the commit of the checkout it runs from, with `+` if tracked files differ from it."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(ROOT), "-c", f"safe.directory={ROOT}", *arguments]
        try:
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            return ""

    if not (ROOT / ".git").exists() or not (commit := git("rev-parse", "--short=10", "HEAD")):
        return __version__
    return f"{__version__} ({commit}{'+' if git('status', '--porcelain', '--untracked-files=no') else ''})"


# --- files -----------------------------------------------------------------------------------------------------------
def report(parts: Sequence[PartResult]) -> Report:
    return Report(machine=machine(), parts=tuple(parts))


def save(content: Report, path: Path) -> None:
    """Write a report as JSON. Raises NotFound, InvalidRequest."""
    write(path, msgspec.json.format(msgspec.json.encode(content), indent=1).decode() + "\n")


def write(path: Path, text: str) -> None:
    """Write a file. Raises NotFound if its folder is missing, InvalidRequest if it can't be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except FileNotFoundError as error:
        raise NotFound(f"there is no folder {path.parent}", hint="make it first") from error
    except OSError as error:
        raise InvalidRequest(f"{path} can't be written: {error.strerror}", hint="name another file") from error


def load(paths: Sequence[Path]) -> Report:
    """Join saved reports; the machine is that of the last one. Raises NotFound, InvalidRequest."""
    parts: dict[tuple[str, str], PartResult] = {}
    saved: Report | None = None
    for path in paths:
        try:
            saved = msgspec.json.decode(path.read_bytes(), type=Report)
        except OSError as error:
            raise NotFound(f"{path} can't be read: {error.strerror}", hint=_HOW) from error
        except msgspec.MsgspecError as error:
            raise InvalidRequest(f"{path} is not a report: {error}", hint=_HOW) from error
        for part in saved.parts:
            known = parts.get((part.group, part.name))
            if known is None or (part.at >= known.at and not part.skipped):
                parts[part.group, part.name] = part
    if saved is None:
        raise InvalidRequest("no report was named", hint="memd bench --from results.json --html report.html")
    return msgspec.structs.replace(saved, parts=tuple(parts.values()))


# --- text ------------------------------------------------------------------------------------------------------------
def number(value: float) -> str:
    """A value with two or three significant decimals; none for whole and for large numbers."""
    digits = 0 if float(value).is_integer() or abs(value) >= 10_000 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{digits}f}"


def interval(figure: Figure) -> str:
    """The 95 % interval, "" if there is none."""
    return "" if figure.low is None or figure.high is None else f"[{number(figure.low)}, {number(figure.high)}]"


def value_as_targeted(figure: Figure) -> str:
    """The value as its target counts it: as a multiple of the floor if the target is one."""
    if figure.target and figure.target.times:
        return f"{figure.ratio:.1f} × ({number(figure.value)} {figure.unit})"
    return f"{number(figure.value)} {figure.unit}".strip()


def table(figures: Sequence[Figure]) -> list[list[str]]:
    """The titles, then a row of texts for each figure, the last `met`, `missed` or ""; floors only if there are any."""
    floors = any(figure.floor for figure in figures)
    rows = [["figure", "value", *(("floor", "ratio") if floors else ()), "95 % interval", "samples", "target", ""]]
    for figure in figures:
        row = [figure.name.strip(), f"{number(figure.value)} {figure.unit}"]
        if floors:
            row += [f"{number(figure.floor)} {figure.unit}", f"{figure.ratio:.1f} ×"] if figure.floor else ["", ""]
        met = "" if figure.met is None else "met" if figure.met else "missed"
        rows.append([*row, interval(figure), f"{figure.samples:,}", str(figure.target or ""), met])
    return rows


def run_details(part: PartResult) -> str:
    """When, at which version, under which load and for how long a part was measured."""
    before, after = part.load
    return f"{part.at}, {part.version}, load {before:g} → {after:g}, {part.seconds:,.0f} s"


def markdown(content: Report) -> str:
    """A report as Markdown, with the missed targets first."""
    return "\n".join(_markdown(content)) + "\n"


def _markdown(content: Report) -> Iterator[str]:
    yield "# Benchmarks\n"
    yield (
        "Generated by `memd bench … --save results.json` and `memd bench --from results.json --markdown FILE`; do not"
        " edit. Each part says when, at which commit and under which load it was measured; the code in"
        " `clients/bench/` shows how. Data that does not come with memd is named by `--data`.\n"
    )
    yield f"{content.machine}.\n"
    held, missed = content.held, content.missed
    if held:
        yield f"**{len(held) - len(missed)} of {len(held)} targets met.**" + (" Missed:" if missed else "") + "\n"
    for part, figure in missed:
        value = value_as_targeted(figure)
        yield f"- `{part.group}/{part.name}`: {figure.name.strip()}: {value}, target {figure.target}"
    for part in content.parts:
        yield f"\n## {part.group}/{part.name}\n\n{_escaped(part.what)}\n"
        yield from _part(part)


def _part(part: PartResult) -> Iterator[str]:
    if reason := part.skipped or part.failed:
        yield f"*{'Not measured' if part.skipped else 'Failed'}: {_escaped(reason)}*"
        return
    titles, *rows = table(part.figures)
    yield f"| {' | '.join(titles)} |"
    yield f"|---|---:|{'---:|---:|' if 'floor' in titles else ''}---|---:|---|---|"
    yield from (f"| {' | '.join(map(_escaped, row))} |" for row in rows)
    yield ""
    if part.notes:
        yield "\n".join(f"- {_escaped(note)}" for note in part.notes) + "\n"
    if part.shows_not:
        yield f"Does not show: {_escaped(part.shows_not)}.\n"
    yield f"*{run_details(part)}{' at the small size' if part.quick else ''}.*"


def _escaped(text: str) -> str:
    """`text` on one line, with the characters escaped that Markdown or a table would interpret."""
    return " ".join(text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").split())
