"""`memd agent teach|test|school|show|close`: an agent is taught by files, and shows what it has of them (O3, O5)."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import RunningDaemon

COURSE = """# Lighthouse

## Tower & <lamp>

The lamp burns rapeseed oil and is filled on Fridays.

Q: What does the lamp burn?
A: rapeseed oil

## Boat

The supply boat brings bread every second Tuesday.

Q: Which food does the boat bring?
A: bread
Q: Who paints the railing of the balcony?
A: Marek
"""


@pytest.fixture
def course(tmp_path: Path) -> Path:
    file = tmp_path / "light.md"
    file.write_text(COURSE)
    return file


def test_an_agent_is_taught_tested_and_shows_its_school_O3(
    daemon: RunningDaemon, memd: Callable[..., Any], course: Path, tmp_path: Path
) -> None:
    unknown = memd("agent", "teach", "keeper", str(course))
    assert unknown.code == 4 and "memd agent add keeper" in unknown.errors
    memd("agent", "add", "keeper")
    assert "has no course" in memd("agent", "school", "keeper").text
    taught = memd("agent", "teach", "keeper", str(course))
    assert "2 new passages, 0 kept · 3 questions" in taught.text
    assert "before: 0 of 3" in taught.text and "test: 2 of 3 questions answered" in taught.text
    assert "not answered · Boat: Who paints the railing of the balcony?" in taught.text
    again = memd("agent", "teach", "keeper", str(course), "--json").data
    assert (again["taught"]["added"], again["taught"]["kept"], again["test"]["asked"]) == (0, 2, [])
    school = memd("agent", "school", "keeper").text
    assert re.search(r"Tower & <lamp> +▁█ +before 0/1 · after 1/1", school)
    assert "gap · Boat: Who paints the railing of the balcony? (Marek)" in school
    page = tmp_path / "school.html"
    assert "wrote" in memd("agent", "school", "keeper", "--html", str(page)).text
    html = page.read_text()
    assert html.count("<svg") == 2 and "Tower &amp; &lt;lamp&gt;" in html
    assert "<lamp>" not in html and "http" not in html and "<script" not in html
    assert "no question is due" in memd("agent", "test", "keeper").text
    assert "course · Lighthouse · 2 of 3 questions answered; the next test" in memd("agent", "show", "keeper").text
    assert "closed" in memd("agent", "close", "keeper", "light").text
    missing = memd("agent", "close", "keeper", "harbour")
    assert missing.code == 4 and "memd agent school keeper" in missing.errors


def test_a_bad_course_is_refused_with_its_line_O3(
    daemon: RunningDaemon, memd: Callable[..., Any], course: Path
) -> None:
    memd("agent", "add", "keeper")
    course.write_text(COURSE.replace("A: bread\n", ""))
    refused = memd("agent", "teach", "keeper", str(course))
    assert refused.code == 2 and "light.md, line 14" in refused.errors and "docs/AGENTS.md" in refused.errors


def test_the_prompt_of_an_agent_comes_back_as_it_was_given_O5(
    daemon: RunningDaemon, memd: Callable[..., Any], tmp_path: Path
) -> None:
    file, prompt = tmp_path / "keeper.txt", "You keep the light.\r\n\tNever  sleep.\n\n"
    file.write_bytes(prompt.encode())
    assert "memd keeps its prompt" in memd("agent", "add", "keeper", "--prompt", str(file)).text
    assert memd("agent", "show", "keeper", "--prompt", "--json").data["prompt"] == prompt
    assert memd("agent", "show", "keeper", "--prompt").text == prompt.replace("\r\n", "\n")
    assert "prompt · 37 characters" in memd("agent", "show", "keeper").text
    memd("agent", "add", "keeper", "--prompt", "-", input="Sleep by day.")
    assert memd("agent", "show", "keeper", "--prompt").text == "Sleep by day."
    for content, problem in ((b" \n", "empty"), (b"\xff", "UTF-8"), (b"ghp_" + b"a1B2c3D4e5F6g7H8i9J0" * 2, "secret")):
        file.write_bytes(content)
        refused = memd("agent", "add", "keeper", "--prompt", str(file))
        assert refused.code == 2 and problem in refused.errors
    assert memd("agent", "show", "keeper", "--prompt").text == "Sleep by day."
    memd("agent", "add", "baker")
    assert "--prompt FILE" in memd("agent", "show", "baker", "--prompt").errors
