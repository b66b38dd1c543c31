"""`python -m memd.daemon` runs one daemon in the foreground until SIGTERM, SIGINT or a `stop` request; with an argument
it runs a command of `server/offline.py`. Exit codes are those of the error tree.
"""

from __future__ import annotations

import gc
import os
import signal
import sys

os.umask(0o077)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # two BLAS threads cost 70 times as much on a busy machine


def main() -> int:
    """Run the daemon; returns the exit code."""
    from ..protocol.errors import MemdError
    from ..protocol.places import places, why_disabled
    from . import failpoint
    from .world import real_world

    home = places(os.environ, os.getuid())
    try:
        failpoint.arm(os.environ.get("MEMD_FAIL", ""))
    except MemdError as error:
        print(f"memd: {error.message}\nhint: {error.hint}", file=sys.stderr)
        return error.exit_code
    if why_disabled(os.environ, home):  # quietly and at once (W14)
        return 0
    if len(sys.argv) > 1:
        from .server import offline

        return offline.run(sys.argv[1], sys.argv[2:], home, real_world())
    import logging.handlers

    from .config import load_config
    from .server.home import check_home
    from .server.log_format import CleanFormatter
    from .server.startup import Daemon

    try:
        config = load_config(home.config, os.environ)
        check_home(home)
        handler = logging.handlers.RotatingFileHandler(home.log, maxBytes=config.log_bytes, backupCount=2)
        handlers: list[logging.Handler] = [handler]
        if sys.stderr.isatty():
            handlers.append(logging.StreamHandler())
        for each in handlers:
            each.setFormatter(CleanFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logging.basicConfig(level=os.environ.get("MEMD_LOG", "INFO").upper(), handlers=handlers)
        logging.getLogger("apscheduler").setLevel(logging.WARNING)
        gc.disable()  # objects made while it opens stay: there is nothing to collect
        daemon = Daemon(home, config, real_world())
        gc.freeze()
        gc.enable()
    except MemdError as error:
        logging.getLogger("memd").error("%s (%s)", error.message, error.hint)
        print(f"memd: {error.message}\nhint: {error.hint}", file=sys.stderr)
        return error.exit_code

    def stop(number: int, frame: object) -> None:
        daemon.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    daemon.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
