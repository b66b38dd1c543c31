"""The trunk, with its real weights: unit vectors that depend on the text alone, and files that are what they claim."""

import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

from memd.models import registry
from memd.models.trunk import Trunk
from memd.protocol.errors import ModelMissing

TEXTS = [
    "We decided to use PostgreSQL for the orders service.",
    "The orders service stores its data in Postgres.",
    "My daughter is afraid of thunderstorms.",
    "ok",
    "",
    "CI runs on two cores, so the test suite must stay under ten minutes, whatever we add to it this year.",
    "会議は火曜日の午後三時からです。",
    "error[E0502]: cannot borrow `buffer` as mutable because it is also borrowed as immutable",
]


@pytest.fixture(scope="module")
def trunk() -> Trunk:
    return Trunk()


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A folder with the package's weights, to damage."""
    for path in registry.WEIGHTS.iterdir():
        shutil.copyfile(path, tmp_path / path.name)
    return tmp_path


def test_vectors_are_unit_rows_of_384(trunk: Trunk) -> None:
    vectors = trunk.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), 384)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_no_texts_give_no_rows(trunk: Trunk) -> None:
    assert trunk.embed([]).shape == (0, 384)


def test_a_vector_depends_on_its_text_alone(trunk: Trunk) -> None:
    together = trunk.embed(TEXTS)
    alone = np.concatenate([trunk.embed([text]) for text in reversed(TEXTS)])[::-1]
    assert np.array_equal(together, alone)


def test_in_a_batch_neighbours_move_a_vector_a_little_and_the_order_stays(trunk: Trunk) -> None:
    texts = [f"{text} {number}" for number in range(5) for text in TEXTS]
    cosines = (trunk.embed(texts) * trunk.embed(texts, batch=32)).sum(axis=1)
    assert cosines.mean() > 0.985
    assert cosines.min() > 0.96


def test_a_paraphrase_is_nearer_than_another_subject(trunk: Trunk) -> None:
    decision, paraphrase, daughter = trunk.embed(TEXTS[:3])
    assert decision @ paraphrase > 0.6
    assert decision @ paraphrase > decision @ daughter + 0.4


def test_the_vectors_are_those_that_were_measured(trunk: Trunk) -> None:
    # 0.723 is what the model gives in fp32.
    question, answer = trunk.embed(["Where does Tom's cat sleep?", "The cat of Tom sleeps on the piano."])
    assert question @ answer == pytest.approx(0.723, abs=0.02)


@pytest.mark.parametrize("text", ["word " * 5000, "x" * 1_000_000, "\ud800 alone", "a\0b", "\n\t ", "👩🏽‍💻" * 400])
def test_no_text_is_too_long_or_too_strange(trunk: Trunk, text: str) -> None:
    assert np.linalg.norm(trunk.embed([text])[0]) == pytest.approx(1, abs=1e-5)


def test_what_stands_after_256_tokens_does_not_count(trunk: Trunk) -> None:
    head = "memory " * 254
    one, other = trunk.embed([head + "about cats", head + "about taxes"])
    assert np.array_equal(one, other)
    assert len(trunk.tokens.ids(head + "about cats")) == 256


def test_a_short_text_takes_few_tokens(trunk: Trunk) -> None:
    assert len(trunk.tokens.ids("two words")) == 4


def test_the_weights_of_the_package_are_whole() -> None:
    assert registry.verify() == []


def test_the_id_names_the_bytes_of_the_trunk() -> None:
    info = registry.info()
    assert info.id == f"minilm-l6-int8@{info.sha256[:12]}"
    assert info.dimension == 384
    assert info.licence == "Apache-2.0"


def test_what_read_a_text_names_trunk_and_heads_R4() -> None:
    info = registry.info()
    told = info.read_by(("distiller", "pair"))
    heads = [f"{name}@{info.files[info.heads[name]][:8]}" for name in ("distiller", "pair")]
    assert told == "+".join((info.id, *heads))


def test_one_flipped_byte_is_found_and_not_loaded(copied: Path) -> None:
    path = copied / registry.info().trunk
    content = bytearray(path.read_bytes())
    content[12_345_678] ^= 1
    path.write_bytes(content)
    assert [problem.split(":")[0] for problem in registry.verify(copied)] == [path.name]
    with pytest.raises(ModelMissing, match=path.name) as caught:
        Trunk(copied)
    assert caught.value.hint


def test_a_missing_file_is_named(copied: Path) -> None:
    (copied / registry.info().tokenizer).unlink()
    assert registry.verify(copied) == ["tokenizer.json: missing (No such file or directory)"]
    with pytest.raises(ModelMissing, match=r"tokenizer\.json"):
        Trunk(copied)


@pytest.mark.parametrize("content", [None, b"{", b'{"name": "x"}', b"\xff"])
def test_a_folder_without_a_manifest_is_no_model(copied: Path, content: bytes | None) -> None:
    path = copied / registry.MANIFEST
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(ModelMissing, match=registry.MANIFEST):
        registry.info(copied)


def test_every_named_file_needs_a_hash(copied: Path) -> None:
    info = registry.info(copied)
    short = msgspec.structs.replace(info, files={info.trunk: info.sha256})
    (copied / registry.MANIFEST).write_bytes(msgspec.json.encode(short))
    with pytest.raises(ModelMissing, match=r"no hash for .*tokenizer\.json"):
        registry.info(copied)


def test_importing_the_room_loads_no_model_library() -> None:
    code = (
        "import sys, memd.models.registry, memd.models.trunk; memd.models.registry.info(); "
        "print([name for name in ('onnxruntime', 'tokenizers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_loading_and_embedding_prints_nothing() -> None:
    code = "from memd.models.trunk import Trunk; Trunk().embed(['quiet'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout + done.stderr == ""
