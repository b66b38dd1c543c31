"""A folder of an exchange that only one process uses at a time, and errors of writing into it."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from ...protocol.errors import MemdError, StorageFull, StoreError, Unavailable
from ..python.folder import make_private

LOCK_S = 60.0


@contextmanager
def exclusive(folder: Path) -> Generator[int]:
    """Lock a folder, which need not exist, by a file beside it; yield the file's descriptor. Raises Unavailable,
    StoreError, StorageFull."""
    with storing(folder):
        make_private(folder.parent)
        descriptor = os.open(folder.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _lock(descriptor)
        yield descriptor
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Lock a file. Raises Unavailable."""
    end = time.monotonic() + LOCK_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if time.monotonic() > end:
                raise Unavailable("another memd is pushing or pulling this project", hint="try again later") from error
            time.sleep(0.02)


@contextmanager
def storing(folder: Path, *others: type[Exception], least_free: int = 0) -> Generator[None]:
    """Turn errors of writing into those that the user can act on. `others`: errors of a library that do not say why it
    could not write; with less than `least_free` bytes the disk counts as full. Raises StorageFull, StoreError."""
    try:
        yield
    except MemdError:
        raise
    except (OSError, *others) as error:
        is_full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
        if is_full or _free(folder) < least_free:
            raise StorageFull(f"{folder} can't be written: the disk is full", hint="free some space") from error
        hint = "remove it: the next push makes it again"
        raise StoreError(f"{folder} can't be written: {error}", hint=hint) from error


def _free(folder: Path) -> int:
    """Return the free bytes of a folder's disk, or of its parent's."""
    with suppress(OSError):
        return shutil.disk_usage(folder if folder.exists() else folder.parent).free
    return 1 << 62
