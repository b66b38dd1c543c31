"""Damaged bytes are reported, harmless, or named by the next start; a wrong value is never served (U3, P-11)."""

from pathlib import Path
from random import Random

import pytest

from tests.conftest import FAULT_ROUNDS
from tests.faults.flips import FILES, damage, look, make

BITS, PAGES = (4, 2) if FAULT_ROUNDS == 1 else (10 * FAULT_ROUNDS, 2 * FAULT_ROUNDS)
KILLED = FILES[:1] if FAULT_ROUNDS == 1 else FILES


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory at rest."""
    return make(tmp_path_factory.mktemp("flips") / "home")


@pytest.mark.parametrize(("file", "killed"), [*((file, False) for file in FILES), *((file, True) for file in KILLED)])
def test_a_damaged_store_never_serves_a_wrong_value_P11(data: Path, file: str, killed: bool) -> None:
    truth = look(data)
    found = [
        (at, what)
        for pages, places in ((False, BITS), (True, PAGES))
        for at, what in damage(data, truth, file, places, Random(5), pages=pages, killed=killed)
    ]
    assert [each for each in found if each[1].startswith(("wrong", "died"))] == []
