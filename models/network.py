"""Run a network on this machine's processor: the one place that sets up onnxruntime, which is loaded with the first
network, not with this module, so that the daemon never carries it. Files are checked before they are loaded."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ..protocol.errors import ModelMissing
from .registry import WEIGHTS, ModelInfo, info, remedy, require
from .tokens import WordPieces

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

Label = TypeVar("Label", bound=str)
Ids = tuple[Sequence[int], Sequence[int]]  # Token ids of a text, and beside each the segment it belongs to


def open_network(path: Path, threads: int = 1) -> InferenceSession:
    """The network in `path`, on `threads` threads."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # else it writes a device id into the home (P-27)
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # A thread that spins while it waits takes a core from the user's own work.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


class Network:
    """The trunk of a model's folder, or the head that `HEAD` names. Loading takes some 0.15 s and 30 MB; may be shared
    between threads."""

    HEAD: ClassVar = ""

    def __init__(self, folder: Path | None = None, threads: int = 1) -> None:
        """Load it from `folder` (default: the package's own weights). Raises `ModelMissing` where the manifest does not
        name it, or a file is absent or not the one that the manifest describes."""
        folder = WEIGHTS if folder is None else folder
        self.info: ModelInfo = info(folder)
        file = self.info.heads.get(self.HEAD) if self.HEAD else self.info.trunk
        if file is None:
            raise ModelMissing(f"{folder} has no {self.HEAD} head", hint=remedy(folder))
        require(folder, {self.info.trunk, self.info.tokenizer, file})
        self._session = open_network(folder / file, threads)
        self.tokens = WordPieces(folder / self.info.tokenizer, self.info.max_tokens)


class Head(Network):
    """The trunk with an adapter and what it learnt. Its file refers to the trunk's file for the rest, so both must lie
    in one folder. One text runs at a time, so that nothing else decides its outputs."""

    def _read(self, row: Ids, **more: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        """The outputs of the network for one text, each without its first axis."""
        ids = np.asarray([row[0]], np.int64)
        feed = {"ids": ids, "segments": np.asarray([row[1]], np.int64), "mask": np.ones(ids.shape, np.float32)}
        outputs: list[NDArray[np.float32]] = self._session.run(None, {**feed, **more})
        return [output[0] for output in outputs]


def softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Probabilities over the last axis."""
    grown = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return grown / grown.sum(axis=-1, keepdims=True)


def ranked(labels: tuple[Label, ...], logits: NDArray[np.float32]) -> dict[Label, float]:
    """The probability of each label, from the most likely on."""
    values = cast("list[float]", softmax(logits).tolist())
    return dict(sorted(zip(labels, values, strict=True), key=lambda pair: -pair[1]))
