"""A folder is a model when it has been used as one: hashes, dimension, unit vectors, and a table of the same space."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from memd.models import registry
from memd.models.probes import problems_of
from memd.protocol.errors import ModelMissing
from tests.models.second_model import make_model, write_manifest

FILES = ("trunk.onnx", "tokenizer.json", "table.npy")


@pytest.fixture
def second(tmp_path: Path) -> Path:
    return make_model(tmp_path / "second", "second", 128)


def test_the_packages_own_model_is_one() -> None:
    assert problems_of(registry.WEIGHTS) == []


def test_a_model_of_another_dimension_is_one_P14(second: Path) -> None:
    assert problems_of(second) == []


def test_a_flipped_byte_and_a_missing_file_are_named(second: Path) -> None:
    raw = bytearray((second / "trunk.onnx").read_bytes())
    raw[1000] ^= 1
    (second / "trunk.onnx").write_bytes(raw)
    (second / "tokenizer.json").unlink()
    assert [problem.split(":")[0] for problem in problems_of(second)] == ["tokenizer.json", "trunk.onnx"]


def test_a_folder_without_a_manifest_is_none(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match=registry.MANIFEST):
        problems_of(tmp_path)


def test_a_model_without_a_query_table_can_not_search(second: Path) -> None:
    write_manifest(second, "second", 128, "trunk.onnx", "tokenizer.json", None)
    assert "no query table" in problems_of(second)[0]


def test_the_stated_dimension_must_be_the_files(second: Path) -> None:
    write_manifest(second, "second", 64, *FILES)
    assert "30522 × 64 expected" in problems_of(second)[0]


def test_a_table_with_too_few_words_would_fail_on_a_question_later(second: Path) -> None:
    np.save(second / "table.npy", np.load(second / "table.npy")[:-1])
    write_manifest(second, "second", 128, *FILES)
    assert "30522 × 128 expected" in problems_of(second)[0]


def test_a_table_of_another_space_is_not_taken_P14(second: Path) -> None:
    table = np.load(second / "table.npy")
    table["row"] = table["row"][:, np.random.default_rng(5).permutation(128)]
    np.save(second / "table.npy", table)
    write_manifest(second, "second", 128, *FILES)
    assert "another trunk" in problems_of(second)[0]


@pytest.mark.parametrize("file", FILES)
def test_files_with_the_right_hashes_and_no_sense_are_not_loaded(second: Path, file: str) -> None:
    (second / file).write_bytes(b"{}" * 50)
    write_manifest(second, "second", 128, *FILES)
    assert "can't be used" in problems_of(second)[0]


def test_the_cosines_of_the_maker_are_compared(second: Path) -> None:
    found = msgspec.structs.replace(registry.info(second), probes=(0.9, 0.9, 0.9))
    (second / registry.MANIFEST).write_bytes(msgspec.json.encode(found))
    assert "the manifest says 0.900" in problems_of(second)[0]
