"""A home with a project whose repository has a `.pi` folder, without a socket: real stores, and patches as authors of
other homes would write them."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha1
from pathlib import Path
from typing import Any

import msgspec

from memd.daemon.config import Config
from memd.daemon.services.access.access_service import AccessService
from memd.daemon.services.access.passes import Passes
from memd.daemon.services.core import core_of
from memd.daemon.services.corrections.corrections_service import pinned
from memd.daemon.services.corrections.inbox_service import InboxService
from memd.daemon.services.corrections.undo import SessionUndo
from memd.daemon.services.governance.governance_service import GovernanceService
from memd.daemon.services.playbook_belief import playbook_id
from memd.daemon.services.sharing.gate import ShareGate
from memd.protocol.curation import Thresholds
from memd.protocol.event import Origin
from memd.protocol.governance import PatchesTaken, TakePatches, TreeFile, TrustPi
from memd.protocol.operation import (
    Added,
    AliasAdded,
    AnyOperation,
    ChangeProposed,
    PatchStep,
    PoolOpened,
    SessionOpened,
)
from memd.protocol.patch_file import PLAYBOOK, patch_id
from memd.protocol.places import places
from memd.protocol.record import Record
from memd.protocol.shared_lines import of_repository
from tests.daemon.living import WHY, Running, forgetting_of
from tests.daemon.living import record as living_record

POOL = "project/orchard"
ROOT, REMOTE = "f" * 40, "example.org/orchard/app"
DOCUMENT = "h:s"
DAY = "2026-02-10"


def seed(name: str, statement: str = "", **more: Any) -> dict[str, Any]:
    """A record as a file has it."""
    return {
        "id": f"mem_20260210_{name}",
        "layer": "L2",
        "scope": {"type": "project"},
        "tags": ["convention", "backend"],
        "statement": statement or f"The service {name} keeps its own port.",
        "evidence": [{"type": "session", "ref": "2026-02-09", "note": ""}],
        "confidence": 0.8,
        "stability": "stable",
        "created_at": "2026-02-09",
        "updated_at": "2026-02-10",
        "review": {"cadence_days": 90, "next_review": "2026-05-10", "change_condition": "3 sessions say otherwise"},
        "status": "active",
        "supersedes": [],
        "superseded_by": [],
        **more,
    }


def add(name: str, statement: str = "", **more: Any) -> dict[str, Any]:
    return {"op": "add", "target": PLAYBOOK, "record": seed(name, statement, **more)}


def supersede(old: str, new: str) -> dict[str, Any]:
    return {"op": "supersede", "from": f"mem_20260210_{old}", "to": f"mem_20260210_{new}"}


def deprecate(name: str, reason: str = "") -> dict[str, Any]:
    return {"op": "deprecate", "id": f"mem_20260210_{name}", "reason": reason}


def review(name: str, at: str, confidence: float | None = None, next_review: str = "") -> dict[str, Any]:
    return {
        "op": "review",
        "id": f"mem_20260210_{name}",
        "at": at,
        "confidence": confidence,
        "next_review": next_review,
    }


def patch(*ops: dict[str, Any], day: str = DAY, name: str = "") -> dict[str, Any]:
    """A patch file of another author as fields."""
    return {"patch_id": name or patch_id(ops, day), "ops": list(ops), "generated_by": "curator", "created_at": day}


def file(fields: dict[str, Any] | bytes, author: str = "Ana", **more: Any) -> TreeFile:
    data = fields if isinstance(fields, bytes) else msgspec.json.encode(fields)
    return TreeFile(more.get("blob") or sha1(data).hexdigest(), more.get("commit", "c" * 40), author, data)


class PatchHome(Running):
    """Stores with a write thread, the governance service and what it works with."""

    def __init__(self, folder: Path, *, trusted: bool = True) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        super().__init__(folder / "data")
        self.places = places({"MEMD_HOME": str(folder), "HOME": str(folder)}, 1000)
        self.thresholds = Thresholds()
        self.core = core_of(self.stores, self.places, Config, self.world)
        self.forgetting = forgetting_of(self.core, self.writer)
        self.governance = GovernanceService(
            self.core,
            self.writer,
            why_not_exported=ShareGate(self.stores).why_not_exported,
            thresholds=lambda pool: self.thresholds,
        )
        self.inbox = InboxService(
            self.stores, self.writer, self.forgetting.start_forgetting, patches=self.governance.decisions
        )
        self.sessions = SessionUndo(self.stores, self.writer, self.core.jobs, lambda: None)
        passes = Passes(self.places.state / "pass.key", self.places.config / "pass_keys", self.world.now)
        self.access = AccessService(self.stores, passes, self.core.directory, self.sessions, self.world)
        if self.stores.sources.session(DOCUMENT) is None:
            origin = Origin(host="h", session="s")
            self.stores.commit(
                [
                    PoolOpened(pool=POOL, title="orchard"),
                    AliasAdded(pool=POOL, names=(of_repository(ROOT, REMOTE),)),
                    SessionOpened(document=DOCUMENT, origin=origin, project=POOL, at="2026-01-01T00:00:00Z"),
                ]
            )
        if trusted:
            self.trust()

    # --- what the user does --------------------------------------------------------------------------------------
    def trust(self, trusted: bool = True) -> None:
        self.governance.trust(TrustPi(pool=POOL, trusted=trusted))

    def take(self, *files: TreeFile, present: Sequence[str] | None = None, **more: Any) -> PatchesTaken:
        self.now += 1_000_000
        return self.governance.take(
            TakePatches(pool=POOL, files=files, present=None if present is None else tuple(present), **more)
        )

    def pull(self, *patches: dict[str, Any], author: str = "Ana", **more: Any) -> PatchesTaken:
        """Take a tree that has these patches alone."""
        files = [file(fields, author) for fields in patches]
        return self.take(*files, present=[fields["patch_id"] for fields in patches], **more)

    def pin(self, id: str) -> None:
        record = self.stores.records.get(id)
        assert record is not None
        pinned(self.stores, record, True)

    def settled(self) -> None:
        """Wait until no job runs."""
        while self.core.jobs.current is not None:
            assert self.core.jobs._thread is not None
            self.core.jobs._thread.join(30)

    # --- what a role does ----------------------------------------------------------------------------------------
    def own(self, number: int, text: str = "", **more: Any) -> Record:
        """A record of this home."""
        fields = {"pool": POOL, "tags": ("convention", "backend"), **({"content": text} if text else {}), **more}
        self.stores.commit([Added(record=living_record(number, **fields), decision=WHY)])
        record = self.stores.records.get(f"id{number}")
        assert record is not None
        return record

    def propose(self, *steps: PatchStep, id: str = "p1", by: str = "curator") -> str:
        self.stores.commit([ChangeProposed(id=id, what="patch", record=steps[0].id, by=by, steps=steps)])
        return id

    # --- what there is -------------------------------------------------------------------------------------------
    @property
    def document(self) -> str:
        return f"playbook:{self.governance._mark(POOL)}"

    def id(self, name: str) -> str:
        return playbook_id(POOL, self.governance._mark(POOL), f"mem_20260210_{name}")

    def taken(self, name: str) -> Record:
        record = self.stores.records.get(self.id(name))
        assert record is not None, name
        return record

    def state(self, name: str) -> str:
        record = self.stores.records.get(self.id(name))
        return record.status if record else ""

    def beliefs(self) -> dict[str, Any]:
        """The states of all records of the pool that came with patches."""
        found: dict[str, Any] = {}
        for record in self.stores.records.in_pool(POOL):
            if record.is_from_patch:
                next_review = record.review.next if record.review else ""
                found[record.provenance.spans[0].turn] = (
                    record.status,
                    record.content,
                    record.superseded_by if record.status == "retired" else "",
                    record.valid_to,
                    record.confidence,
                    next_review,
                    record.layer,
                )
        return found

    def operations(self, kind: type) -> list[AnyOperation]:
        return [entry.operation for entry in self.stores.journal.read() if isinstance(entry.operation, kind)]
