"""Builds the wheel into the folder given and refuses one that holds too much or too little.

Comes in: the folder. Goes out: exit 0, or 1 with the reasons. It may hold nothing but the package and its metadata,
no tests, no docs, every module of the rooms, and it may weigh at most 60 MB.
"""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOMS = ("protocol", "models", "stages", "daemon", "clients")
LIMIT_BYTES = 60_000_000


def complaints(wheel: Path, root: Path) -> list[str]:
    """What is wrong with `wheel`, one line each."""
    names = set(zipfile.ZipFile(wheel).namelist())
    wrong = [f"outside of the package: {name}" for name in names if name.split("/")[0].split("-")[0] != "memd"]
    wrong += [f"not for users: {name}" for name in names if name.split("/")[1] in {"tests", "docs", "build"}]
    for room in ROOMS:
        for path in (root / room).rglob("*.py"):
            name = f"memd/{path.relative_to(root).as_posix()}"
            if (path.parent / "__init__.py").exists() and name not in names:
                wrong.append(f"missing: {name}")
    if (size := wheel.stat().st_size) > LIMIT_BYTES:
        wrong.append(f"{size:,} bytes are more than {LIMIT_BYTES:,}")
    return sorted(wrong)


def main() -> int:
    """Builds, looks, tells."""
    root, folder = Path(__file__).resolve().parents[1], Path(sys.argv[1])
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, root], check=True)
    (wheel,) = folder.glob("memd-*.whl")
    wrong = complaints(wheel, root)
    print("\n".join(wrong) or f"{wheel.name}: {wheel.stat().st_size:,} bytes, holds what it should")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
