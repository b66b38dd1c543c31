"""Private folders, files that are written whole or not at all, and the gate for what clients write into them."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ...protocol.errors import Refused

if TYPE_CHECKING:  # its rules cost 4 ms, and most commands write no text
    from ...protocol.secret_gate import SecretGate


def make_private(folder: Path) -> None:
    """Give the folder mode 0700, and make it and its missing parents with that mode, which `Path.mkdir` gives to the
    last one alone. Raises Refused, OSError."""
    for missing in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
        missing.chmod(0o700)
    status = folder.stat()
    if status.st_uid != os.getuid():
        raise Refused(f"{folder} belongs to uid {status.st_uid}", hint="set MEMD_HOME to a folder of your own")
    if status.st_mode & 0o077:
        folder.chmod(0o700)


def write_whole(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Replace a file's content whole or not at all, synced. Raises OSError."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def client_gate(state: Path) -> SecretGate:
    """Return the gate with the short list of rules. The daemon creates its key; without one, the placeholders of this
    gate have a key of their own."""
    from ...protocol.redact import redact
    from ...protocol.secret_gate import KEY_BYTES, KEY_FILE, SecretGate

    key = b""
    with suppress(OSError):
        key = (state / KEY_FILE).read_bytes()
    return SecretGate(redact, key if len(key) == KEY_BYTES else os.urandom(KEY_BYTES))
