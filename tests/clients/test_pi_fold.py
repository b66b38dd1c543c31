"""The fold of the patches of a `.pi` folder, alone and by its script (G2)."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.clients.pi import pi_apply_patch, pi_files
from memd.clients.pi.pi_apply_patch import MalformedPatch, fold, line_of, read
from memd.protocol.errors import InvalidRequest
from memd.protocol.patch_file import AddRecord, PatchFields, SeedRecord, patch_id, read_patch, write_patch

SEED_RECORD = """{
  "id": "mem_20260210_001",
  "layer": "L2",
  "scope": { "type": "global" },
  "tags": ["workflow", "architecture"],
  "statement": "The team consistently prefers specification-first, document-driven development to enable multi-agent \
reproducibility.",
  "evidence": [
    { "type": "artifact", "ref": "docs/arch/", "note": "Observed across multiple project setups" }
  ],
  "confidence": 0.86,
  "stability": "semi-stable",
  "created_at": "2026-02-10",
  "updated_at": "2026-02-10",
  "review": {
    "cadence_days": 30,
    "next_review": "2026-03-12",
    "change_condition": "If 3+ independent projects deviate from this workflow, downgrade or deprecate"
  },
  "status": "active",
  "supersedes": [],
  "superseded_by": []
}"""


def record(id: str, **changes: Any) -> dict[str, Any]:
    return {**json.loads(SEED_RECORD), "id": id, **changes}


def patch(ops: list[dict[str, Any]], day: str = "2026-02-10") -> dict[str, Any]:
    return {"patch_id": patch_id(ops, day), "ops": ops, "generated_by": "curator", "created_at": day}


def adding(id: str, **changes: Any) -> dict[str, Any]:
    return {"op": "add", "target": pi_apply_patch.TARGETS["L2"], "record": record(id, **changes)}


ids = st.sampled_from([f"mem_2026021{n}_00{m}" for n in range(3) for m in range(3)])
days = st.sampled_from(["2026-02-10", "2026-02-11", "2026-03-01"])
shares = st.floats(0, 1)
adds = st.builds(
    lambda id, statement, confidence, target: {**adding(id, statement=statement, confidence=confidence), **target},
    ids,
    st.sampled_from(["Plant in rows.", "Prune in March.", "Ümläute — 剪枝"]),
    shares,
    st.sampled_from([{}, {}, {"target": pi_apply_patch.TARGETS["L1"]}, {"target": "elsewhere"}]),
)
operations = st.one_of(
    adds,
    adds,
    st.builds(lambda id: {"op": "promote", "id": id, "record": record(id, of_later={"x": 1})}, ids),
    st.builds(lambda old, new: {"op": "supersede", "from": old, "to": new}, ids, ids),
    st.builds(lambda id: {"op": "deprecate", "id": id, "reason": "it changed"}, ids),
    st.builds(lambda id, at, share: {"op": "review", "id": id, "at": at, "confidence": share}, ids, days, shares),
    st.builds(lambda id, at: {"op": "review", "id": id, "at": at, "next_review": at}, ids, days),
    st.just({"op": "merge", "ids": ["a"], "op2": [1.5]}),
)
patches = st.lists(st.builds(patch, st.lists(operations, max_size=6), days), max_size=12)


# --- the seed's examples ----------------------------------------------------------------------------------------------
def test_the_seeds_record_comes_back_as_it_went_in_G2() -> None:
    folded = fold(
        [patch([{"op": "add", "target": ".pi/memory/L2.playbooks.jsonl", "record": json.loads(SEED_RECORD)}])]
    )
    line = folded.file("L2")
    assert json.loads(line) == json.loads(SEED_RECORD) and list(json.loads(line)) == list(json.loads(SEED_RECORD))
    assert line == line_of(json.loads(SEED_RECORD))
    jsonschema.Draft202012Validator(pi_files.memory_schema()).validate(json.loads(line))


def test_the_seeds_patch_is_one_and_names_what_it_lacks_G2() -> None:
    ops = [
        adding("mem_20260210_001"),
        {"op": "supersede", "from": "mem_20250101_002", "to": "mem_20260210_001"},
        {"op": "deprecate", "id": "mem_20241212_007", "reason": "contradicted by recent architectural decisions"},
    ]
    seed = {"patch_id": "patch_20260210_001", "ops": ops, "generated_by": "curator", "created_at": "2026-02-10"}
    assert read(json.dumps(seed).encode()) == seed
    jsonschema.Draft202012Validator(pi_files.patch_schema()).validate(seed)
    folded = fold([seed])
    assert json.loads(folded.file("L2"))["supersedes"] == ["mem_20250101_002"]
    assert folded.problems == [
        "patch_20260210_001: no patch adds mem_20250101_002",
        "patch_20260210_001: no patch adds mem_20241212_007",
    ]


# --- properties -------------------------------------------------------------------------------------------------------
@settings(max_examples=200, deadline=None)
@given(patches, st.randoms(use_true_random=False))
def test_any_order_repeat_and_split_gives_the_same_bytes_G2(some: list[dict[str, Any]], chance: random.Random) -> None:
    expected = fold(some)
    mixed = [*some, *chance.choices(some, k=3)] if some else []
    chance.shuffle(mixed)
    again = fold(mixed)
    assert [again.file(layer) for layer in ("L1", "L2")] == [expected.file(layer) for layer in ("L1", "L2")]
    assert sorted(again.problems) == sorted(expected.problems)
    for line in expected.file("L2").splitlines():
        msgspec.json.decode(line, type=SeedRecord)
        assert line + b"\n" == line_of(json.loads(line))


@settings(max_examples=100, deadline=None)
@given(patches)
def test_more_patches_only_add_and_retire_G2(some: list[dict[str, Any]]) -> None:
    before, after = fold(some[:-1]).records, fold(some).records
    for layer in ("L1", "L2"):
        later = {id for each in after.values() for id in each}
        assert set(before[layer]) <= later
        for id, known in before[layer].items():
            if known["status"] != "active" and id in after[layer]:
                assert after[layer][id]["status"] != "active"


broken = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    return [(value, key) for key in keys] + [place for key in keys for place in places(value[key])]


@settings(max_examples=400, deadline=None)
@given(st.lists(operations, min_size=1, max_size=3), st.data())
def test_the_script_takes_what_memd_takes_G2(ops: list[dict[str, Any]], data: st.DataObject) -> None:
    whole = json.loads(json.dumps(patch(ops)))
    if data.draw(st.booleans()):
        holder, key = data.draw(st.sampled_from(places(whole)))
        if data.draw(st.booleans()):
            holder[key] = data.draw(broken)
        else:
            del holder[key]
    written = json.dumps(whole).encode()
    try:
        read_patch(written)
        expected = True
    except InvalidRequest:
        expected = False
    try:
        read(written)
        is_read = True
    except MalformedPatch:
        is_read = False
    assert is_read == expected


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b'{"gone": 1}',
        b'{"patch_id": NaN}',
        b"[" * 100_000,
        b'"\\ud800"',
        b"<<<<<<< HEAD\n{}\n=======\n",
        b"{}" + b" " * pi_apply_patch.PATCH_BYTES,
    ],
)
def test_what_is_no_patch_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedPatch):
        read(data)


# --- files ------------------------------------------------------------------------------------------------------------
def put(folder: Path, ops: list[dict[str, Any]], day: str = "2026-02-10") -> Path:
    id, data = pi_files.patch_file(ops, "curator", day)
    path = folder / "patches" / f"{id}.json"
    path.write_bytes(data)
    return path


def script(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-S", str(folder / "tools" / "pi_apply_patch.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pi_files.init(tmp_path / ".pi")
    return tmp_path / ".pi"


def test_the_script_makes_the_same_file_as_memd_G2(folder: Path) -> None:
    playbook = folder / "memory" / "L2.playbooks.jsonl"
    put(folder, [adding("mem_20260210_001"), adding("mem_20260210_002", statement="Ümläute — 剪枝")])
    put(folder, [{"op": "supersede", "from": "mem_20260210_001", "to": "mem_20260210_002"}], "2026-02-12")
    assert script(folder, "--check").returncode == 1
    assert playbook.read_bytes() == b""
    assert script(folder).returncode == 0
    assert playbook.read_bytes() == pi_files.read_state(folder).folded.file("L2")
    lines = [json.loads(line) for line in playbook.read_text(encoding="utf-8").splitlines()]
    assert [(line["status"], line["updated_at"]) for line in lines] == [
        ("superseded", "2026-02-12"),
        ("active", "2026-02-10"),
    ]
    assert script(folder, "--check").returncode == 0
    assert pi_files.regenerate(pi_files.read_state(folder)) == []


def test_a_malformed_patch_is_named_and_nothing_is_written_G2(folder: Path) -> None:
    put(folder, [adding("mem_20260210_001")])
    assert script(folder).returncode == 0
    before = (folder / "memory" / "L2.playbooks.jsonl").read_bytes()
    put(folder, [adding("mem_20260210_002")])
    (folder / "patches" / "patch_20260211_bad.json").write_text("<<<<<<< HEAD\n", encoding="utf-8")
    for arguments in ([], ["--check"]):
        done = script(folder, *arguments)
        assert done.returncode == 1 and "patches/patch_20260211_bad.json: not JSON" in done.stderr
    assert pi_files.regenerate(pi_files.read_state(folder)) == []
    assert (folder / "memory" / "L2.playbooks.jsonl").read_bytes() == before


def test_a_patch_under_another_name_or_behind_a_link_is_malformed(folder: Path, tmp_path: Path) -> None:
    path = put(folder, [adding("mem_20260210_001")])
    path.rename(folder / "patches" / "patch_20260210_other.json")
    (folder / "patches" / "patch_20260210_link.json").symlink_to(tmp_path / "nothing")
    state = pi_files.read_state(folder)
    assert [line.split(":")[0] for line in state.malformed] == [
        "patches/patch_20260210_link.json",
        "patches/patch_20260210_other.json",
    ]


def test_a_forgotten_patch_states_nothing(folder: Path) -> None:
    path = put(folder, [adding("mem_20260210_001")])
    assert pi_files.write_patch_file(folder, path.stem, b'{"gone": "abc"}\n') == "updated"
    state = pi_files.read_state(folder)
    assert state.malformed == [] and state.folded.file("L2") == b""


def test_a_project_has_no_identity_and_a_personal_folder_has_one_R9(folder: Path, tmp_path: Path) -> None:
    ops = [adding("mem_20260210_001", layer="L1") | {"target": pi_apply_patch.TARGETS["L1"]}]
    put(folder, ops)
    assert script(folder).returncode == 0
    assert not (folder / "memory" / "L1.identity.jsonl").exists()
    own = tmp_path / "dotfiles" / ".pi"
    pi_files.init(own, personal=True)
    put(own, ops)
    assert script(own).returncode == 0
    assert (own / "memory" / "L1.identity.jsonl").read_bytes() == fold([patch(ops)]).file("L1") != b""


def test_what_memd_writes_folds_to_the_record_it_states_G2() -> None:
    seed = msgspec.json.decode(SEED_RECORD.encode(), type=SeedRecord)
    _, data = write_patch([AddRecord(target=pi_apply_patch.TARGETS["L2"], record=seed)], "curator", "2026-02-10")
    assert msgspec.json.decode(fold([read(data)]).file("L2"), type=SeedRecord) == seed
    assert not pi_files.is_edited(read(data))
    assert pi_files.is_edited(read(data.replace(b"document-driven", b"vibe-driven")))
    assert not pi_files.is_edited(patch([adding("mem_20260210_001")]) | {"patch_id": "patch_20260210_001"})


def test_the_schema_knows_operations_of_later_versions() -> None:
    validator = jsonschema.Draft202012Validator(pi_files.patch_schema())
    assert validator.is_valid(patch([{"op": "merge", "ids": []}]))
    assert not validator.is_valid(patch([{"op": "deprecate"}]))
    assert {field.name for field in msgspec.structs.fields(PatchFields)} == set(patch([]))


def test_eight_authors_with_25_patches_each_merge_without_a_conflict_G2(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        names = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", *names, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout

    folder = tmp_path / ".pi"
    git("init", "-q", "-b", "main")
    pi_files.init(folder)
    git("add", "-A")
    git("commit", "-q", "-m", "init")
    for author in range(8):
        git("checkout", "-q", "-b", f"author{author}", "main")
        for number in range(25):
            ops = [adding(f"mem_20260210_{author}{number:02}", statement=f"Rule {number} of {author}.")]
            if number:
                last = f"mem_20260210_{author}{number - 1:02}"
                ops.append({"op": "supersede", "from": last, "to": ops[0]["record"]["id"]})
            put(folder, ops, f"2026-02-{10 + number % 15}")
        git("add", "-A")
        git("commit", "-q", "-m", f"patches of {author}")
    git("checkout", "-q", "main")
    for author in range(8):
        git("merge", "-q", "--no-ff", "-m", f"merge {author}", f"author{author}")
    assert len(list((folder / "patches").glob("*.json"))) == 200
    state = pi_files.read_state(folder)
    assert state.malformed == state.folded.problems == []
    assert script(folder).returncode == 0
    lines = (folder / "memory" / "L2.playbooks.jsonl").read_bytes().splitlines()
    assert len(lines) == 200 and sum(json.loads(line)["status"] == "active" for line in lines) == 8
