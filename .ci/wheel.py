"""Build the wheel into the folder given and check its content; exit with 1 and the reasons if it is wrong.

The wheel holds every module of the packages and nothing outside the package `memd` and its metadata, no tests and no
documentation, in at most 40 MB.
"""

import subprocess
import sys
import zipfile
from pathlib import Path

PACKAGES = ("protocol", "models", "stages", "daemon", "clients", "benchmarks")
LIMIT_BYTES = 40_000_000


def complaints(wheel: Path, root: Path) -> list[str]:
    """Return the faults of a wheel, one line each."""
    names = set(zipfile.ZipFile(wheel).namelist())
    wrong = [f"outside of the package: {name}" for name in names if name.split("/")[0].split("-")[0] != "memd"]
    wrong += [f"not for users: {name}" for name in names if name.split("/")[1] in {"tests", "docs", "build"}]
    for package in PACKAGES:
        for path in (root / package).rglob("*.py"):
            name = f"memd/{path.relative_to(root).as_posix()}"
            if (path.parent / "__init__.py").exists() and name not in names:
                wrong.append(f"missing: {name}")
    if (size := wheel.stat().st_size) > LIMIT_BYTES:
        wrong.append(f"{size:,} bytes are more than {LIMIT_BYTES:,}")
    return sorted(wrong)


def main() -> int:
    """Build the wheel, check it and print the result."""
    root, folder = Path(__file__).resolve().parents[1], Path(sys.argv[1])
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, root], check=True)
    (wheel,) = folder.glob("memd-*.whl")
    wrong = complaints(wheel, root)
    print("\n".join(wrong) or f"{wheel.name}: {wheel.stat().st_size:,} bytes, holds every module")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
