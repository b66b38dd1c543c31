"""The query table: questions in the trunk's space, without the trunk."""

import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

from memd.models import registry
from memd.models.query import QueryTable
from memd.models.trunk import Trunk
from memd.protocol.errors import ModelMissing

ANSWERED = {
    "Which database do we keep the orders in?": "The shop's purchases are stored in PostgreSQL.",
    "Where is my sister living now?": "My sister moved to Gothenburg in spring.",
    "why did the nightly build break": "Last night's compilation failed because a dependency was yanked.",
    "What is the dog called?": "We named the puppy Biscuit.",
    "How do I publish a release?": "To ship a new version, push a tag and the pipeline does the rest.",
    "What can't Omar eat?": "Omar is allergic to shellfish.",
    "When is the dentist?": "The tooth check-up was moved to the ninth of May.",
    "Do we mock the network in tests?": "Tests talk to a real local server; nothing over the wire is faked.",
    "Who plays an instrument?": "Leonie has taken cello lessons for years.",
    "what did we say about salaries": "The team wants pay bands to be public by autumn.",
}


@pytest.fixture(scope="module")
def table() -> QueryTable:
    return QueryTable()


@pytest.fixture(scope="module")
def trunk() -> Trunk:
    return Trunk()


@pytest.mark.parametrize("text", [*ANSWERED, "", "?", "\ud800", "データベースはどこですか", "why " * 100_000])
def test_every_question_gives_a_unit_vector(table: QueryTable, text: str) -> None:
    vector = table.encode(text)
    assert vector.shape == (384,)
    assert vector.dtype == np.float32
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


def test_the_table_speaks_the_language_of_the_trunk(table: QueryTable, trunk: Trunk) -> None:
    by_table = np.array([table.encode(question) for question in ANSWERED])
    cosines = (by_table * trunk.embed(list(ANSWERED))).sum(axis=1)
    assert cosines.mean() > 0.8
    assert cosines.min() > 0.6


def test_a_question_finds_its_answer_among_the_trunks_vectors(table: QueryTable, trunk: Trunk) -> None:
    answers = trunk.embed(list(ANSWERED.values()))
    first = [int(np.argmax(answers @ table.encode(question))) for question in ANSWERED]
    assert sum(found == at for at, found in enumerate(first)) >= 8


def test_the_same_question_gives_the_same_vector(table: QueryTable) -> None:
    assert np.array_equal(table.encode("Where do we deploy?"), QueryTable().encode("Where do we deploy?"))


def test_word_order_does_not_count(table: QueryTable) -> None:
    assert table.encode("dogs chase cats") @ table.encode("cats chase dogs") == pytest.approx(1, abs=1e-5)


def test_a_damaged_table_is_not_loaded(tmp_path: Path) -> None:
    for path in registry.WEIGHTS.iterdir():
        shutil.copyfile(path, tmp_path / path.name)
    path = tmp_path / str(registry.info().queries)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelMissing, match=path.name):
        QueryTable(tmp_path)


def test_weights_without_a_table_are_named(tmp_path: Path) -> None:
    info = msgspec.structs.replace(registry.info(), queries=None)
    (tmp_path / registry.MANIFEST).write_bytes(msgspec.json.encode(info))
    with pytest.raises(ModelMissing, match="no query table"):
        QueryTable(tmp_path)


def test_asking_needs_no_onnxruntime_and_reads_no_whole_table() -> None:
    code = (
        "import sys; from memd.models.query import QueryTable; table = QueryTable(); table.encode('where'); "
        "print('onnxruntime' in sys.modules, isinstance(table._rows.base.base, __import__('numpy').memmap))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
