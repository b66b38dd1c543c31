"""Other models, made at test time: a graph of three nodes whose word vectors are those of the package's query table.

Each word's vector is cut to the first numbers, a text's is the mean of its words', so it is a small but honest model:
it knows paraphrases, and its own table fits it. The graph is written as the bytes of ONNX's protocol buffers.
"""

import hashlib
import shutil
from pathlib import Path

import msgspec
import numpy as np

from memd.models import registry

FLOAT, INT64 = 1, 7


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(raw)) + raw


def _node(kind: str, inputs: list[str], output: str, *attributes: bytes) -> bytes:
    named = b"".join(_field(1, name) for name in inputs) + _field(2, output) + _field(4, kind)
    return _field(1, named + b"".join(_field(5, each) for each in attributes))


def _integer(name: str, value: int, *, several: bool = False) -> bytes:
    return _field(1, name) + (_field(8, value) + _field(20, 7) if several else _field(3, value) + _field(20, 2))


def _value(name: str, kind: int, *sizes: str) -> bytes:
    shape = b"".join(_field(1, _field(2, size)) for size in sizes)
    return _field(1, name) + _field(2, _field(1, _field(1, kind) + _field(2, shape)))


def _graph(words: np.ndarray) -> bytes:
    tensor = b"".join(_field(1, size) for size in words.shape)
    tensor += _field(2, FLOAT) + _field(8, "words") + _field(9, words.astype("<f4").tobytes())
    nodes = (
        _node("Gather", ["words", "input_ids"], "found"),
        _node("ReduceMean", ["found"], "mean", _integer("axes", 1, several=True), _integer("keepdims", 0)),
        _node("LpNormalization", ["mean"], "vector", _integer("p", 2)),
    )
    inputs = (_value(name, INT64, "batch", "length") for name in ("input_ids", "attention_mask"))
    graph = b"".join(nodes) + _field(2, "static") + _field(5, tensor)
    graph += b"".join(_field(11, each) for each in inputs) + _field(12, _value("vector", FLOAT, "batch", "numbers"))
    return _field(1, 8) + _field(8, _field(2, 13)) + _field(7, graph)


def make_model(folder: Path, name: str, dimension: int) -> Path:
    """A model of that name and dimension in a fresh `folder`; some 20 MB, embeds in microseconds."""
    own = registry.info()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    table = np.load(registry.WEIGHTS / str(own.queries))
    words = (table["scale"][:, None] * table["row"].astype(np.float32))[:, :dimension]
    (folder / "trunk.onnx").write_bytes(_graph(words))
    scales = np.maximum(np.abs(words).max(axis=1), 1e-9) / 127
    made = np.zeros(len(words), [("scale", "<f4"), ("row", "i1", (dimension,))])
    made["scale"], made["row"] = scales, np.round(words / scales[:, None])
    np.save(folder / "table.npy", made)
    shutil.copyfile(registry.WEIGHTS / own.tokenizer, folder / "tokenizer.json")
    write_manifest(folder, name, dimension, "trunk.onnx", "tokenizer.json", "table.npy")
    return folder


def rename_model(folder: Path, name: str) -> Path:
    """The package's own model under another name, so with another id, in a fresh `folder`."""
    own = registry.info()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in own.files:
        (folder / file).symlink_to(registry.WEIGHTS / file)
    write_manifest(folder, name, own.dimension, own.trunk, own.tokenizer, str(own.queries))
    return folder


def write_manifest(folder: Path, name: str, dimension: int, trunk: str, tokenizer: str, queries: str | None) -> None:
    """A manifest with the hashes of the files as they are."""
    files = [file for file in (trunk, tokenizer, queries) if file]
    found = registry.ModelInfo(
        name=name,
        version="1",
        dimension=dimension,
        max_tokens=256,
        trunk=trunk,
        tokenizer=tokenizer,
        queries=queries,
        licence="Apache-2.0",
        source="a test",
        files={file: hashlib.sha256((folder / file).read_bytes()).hexdigest() for file in files},
    )
    (folder / registry.MANIFEST).write_bytes(msgspec.json.encode(found))
