"""The script and the daemon make the same of the same patches (G2)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memd.clients.pi.pi_apply_patch import fold
from memd.protocol.record import LIVE
from tests.daemon.patch_home import PatchHome, add, deprecate, patch, review, supersede

SETS = int(os.environ.get("MEMD_TEST_PATCH_SETS", "60"))
"""Random sets of patches; 1,000 take some minutes."""

names = st.sampled_from([f"00{number}" for number in range(6)])
days = st.sampled_from(["2026-02-10", "2026-02-11", "2026-02-12"])
operations = st.one_of(
    st.builds(
        add, names, st.sampled_from(["Plant in rows.", "Prune in March."]), confidence=st.sampled_from([0.5, 0.8])
    ),
    st.builds(lambda name: {"op": "promote", "id": f"mem_20260210_{name}", "record": add(name)["record"]}, names),
    st.builds(supersede, names, names),
    st.builds(deprecate, names),
    st.builds(review, names, days, st.sampled_from([None, 0.4, 0.9]), st.sampled_from(["", "2026-08-01"])),
)
sets = st.lists(
    st.builds(lambda ops, day: patch(*ops, day=day), st.lists(operations, min_size=1, max_size=5), days),
    min_size=1,
    max_size=8,
    unique_by=lambda fields: fields["patch_id"],
)


@settings(max_examples=SETS, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(sets)
def test_the_script_and_the_daemon_have_the_same_playbook_G2(some: list[dict[str, Any]]) -> None:
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home = PatchHome(Path(folder) / "home")
        home.pull(*some)
        taken = [record for record in home.stores.records.in_pool("project/orchard") if record.is_from_patch]
        live = {record.provenance.spans[-1].turn: record for record in taken if record.status in LIVE}
        stated = {
            name: (record.content, record.confidence, record.review.next[:10] if record.review else "")
            for name, record in live.items()
        }
        home.close()
    made = fold(json.loads(json.dumps(some))).records["L2"]
    assert stated == {
        name: (record["statement"], record["confidence"], record["review"]["next_review"])
        for name, record in made.items()
        if record["status"] == "active"
    }
