"""SIGKILL at every named fail point: nothing acknowledged is lost, nothing is doubled (P-12).

The normal run kills once at each; `MEMD_FAULT_ROUNDS=20` does it as often, each time later.
"""

import signal
from pathlib import Path

import pytest

from memd.daemon.failpoint import NAMES
from memd.protocol.errors import MemdError
from memd.protocol.event import Origin, Said
from memd.protocol.request import Remember
from tests.conftest import FAULT_ROUNDS, START_S, RunningDaemon
from tests.faults.opener import opened
from tests.faults.recording import Promise

OWN = ("archive:", "journal:", "projection:", "keywords:", "marker:", "close:")
POINTS = [name for name in NAMES if name.startswith(OWN)]


def traffic(daemon: RunningDaemon, promises: list[Promise], first: int) -> None:
    """Captures, records and distilling until the daemon is gone or all is done; each promise follows its ack."""
    with daemon.client() as client:
        for number in range(first, first + 8):
            origin = Origin(host="kill", session=f"s{number % 3}")
            words = f"I prefer tool{number} for job{number} in my shell."
            event = Said(turn=f"t{number}", at="2026-01-01T00:00:00Z", role="user", text=words)
            client.capture(origin, [event])
            promises.append(Promise(0, "turn", f"{origin.document}\0t{number}", words))
            words = f"The lamp{number} stands in room{number}."
            wish = Remember(text=words, turn=f"r{number}", at="2026-01-01T00:00:00Z", origin=origin)
            promises.append(Promise(0, "record", client.remember(wish).record.id, words))
    daemon.settle()


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_sigkill_at_a_fail_point_loses_and_doubles_nothing_P12(home: dict[str, str], point: str) -> None:
    promises: list[Promise] = []
    for round_ in range(FAULT_ROUNDS):
        settings = {"MEMD_FAIL": f"{point}:{1 + round_ % 5}", "MEMD_KEYWORD_COMMIT_S": "0.1"}
        daemon = RunningDaemon({**home, **settings})
        try:
            daemon.start()
            traffic(daemon, promises, round_ * 8)
            daemon.terminate()
        except (MemdError, AssertionError):
            assert daemon.process is not None
            assert daemon.process.wait(START_S) == -signal.SIGKILL, daemon.errors.read_text()
        assert daemon.process is not None
        assert daemon.process.wait(START_S) in (-signal.SIGKILL, 0)
        assert round_ or daemon.process.returncode == -signal.SIGKILL, "the fail point was never reached"
        daemon = RunningDaemon(home)
        daemon.start()
        traffic(daemon, promises, round_ * 8)  # the client sends again what it does not know to be taken
        assert daemon.terminate() == 0
        assert opened(Path(home["MEMD_HOME"]) / "data", promises) == ""


def test_an_unknown_fail_point_is_refused(home: dict[str, str]) -> None:
    daemon = RunningDaemon({**home, "MEMD_FAIL": "nowhere"})
    with pytest.raises(AssertionError, match="unknown fail point"):
        daemon.start()
