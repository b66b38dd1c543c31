"""No file in git knows the machine it was written on, nor where packages came from."""

import re
from pathlib import Path

# Joined here, so that this file does not contain what it forbids.
FORBIDDEN = {
    "a folder of one machine": re.compile(rb"(?<![\w.~$}-])/" + b"wo" + b"rk/" + rb"|/" + b"opt" + b"/memd"),
    "a package index": re.compile(
        b"|".join(
            [
                b"py" + rb"pi\.org",
                b"python" + rb"hosted\.org",
                b"registry\\." + b"npmjs|registry\\." + b"yarnpkg",
                b"index" + b"-url",
                b"PIP_" + b"INDEX",
            ]
        )
    ),
}


def complaints(name: str, content: bytes) -> list[str]:
    """What is forbidden in `content`, as `name:line reason`."""
    found = ((reason, hit.start()) for reason, pattern in FORBIDDEN.items() for hit in pattern.finditer(content))
    newline = b"\n"
    return [f"{name}:{content.count(newline, 0, at) + 1} {reason}" for reason, at in found]


def test_no_file_names_a_machine_or_an_index(root: Path, tracked: list[Path]) -> None:
    assert [line for path in tracked for line in complaints(str(path), (root / path).read_bytes())] == []


def test_no_file_name_does_either(tracked: list[Path]) -> None:
    assert [line for path in tracked for line in complaints(str(path), str(path).encode())] == []


def test_the_search_finds_what_it_forbids_and_nothing_else() -> None:
    bad = "cd /wo" + "rk/main\nopen('/opt" + "/memd/x')\nhttps://py" + "pi.org/simple"
    assert [line.split()[0] for line in complaints("x", bad.encode())] == ["x:1", "x:2", "x:3"]
    assert complaints("x", b"/home/ada/work/api ~/work/notes ./work/x https://example.org/work/") == []
