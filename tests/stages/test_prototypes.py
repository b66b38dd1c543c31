"""The shipped vectors of the prototypes are of the present sentences and the present trunk (P-5)."""

from pathlib import Path

import numpy as np
import pytest

from memd.models.trunk import Trunk
from memd.stages import prototypes
from memd.stages.prototypes import Prototypes, embed, load, save


def test_the_shipped_vectors_are_those_of_the_sentences_P5(trunk: Trunk) -> None:
    shipped, fresh = load(prototypes.FILE), embed(trunk)
    assert shipped is not None, "run `python -m memd.stages.prototypes`"
    assert list(shipped) == list(fresh)
    assert all(np.allclose(shipped[name], fresh[name], atol=1e-4) for name in fresh)


def test_without_usable_vectors_the_sentences_are_embedded_P5(
    trunk: Trunk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["I prefer tabs over spaces."]
    expected = Prototypes(trunk).near(texts)
    of_another_trunk, damaged = tmp_path / "other.npz", tmp_path / "damaged.npz"
    monkeypatch.setattr(prototypes, "_source", lambda: "another trunk")
    save(of_another_trunk, {name: -rows for name, rows in embed(trunk).items()})
    monkeypatch.undo()
    damaged.write_bytes(prototypes.FILE.read_bytes()[:10_000])
    for path in (of_another_trunk, damaged, tmp_path / "absent.npz"):
        assert load(path) is None
    monkeypatch.setattr(prototypes, "FILE", damaged)
    (near,) = Prototypes(trunk).near(texts)
    assert near == pytest.approx(expected[0], abs=1e-4)
