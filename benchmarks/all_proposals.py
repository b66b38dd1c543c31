"""What the curator would propose of a home if nothing limited a week's proposals (G3, G4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing

from ..daemon.projections.stores import Stores
from ..daemon.services.curation.curation_service import seed_thresholds
from ..daemon.services.curation.curator import Curator, Earlier, curated_pools
from ..daemon.services.curation.instances import EvidenceCounter
from ..daemon.services.distillation.job_worker import JobWorker
from ..daemon.services.links.document_links import at_head
from ..daemon.world import World
from ..models import registry
from ..protocol.places import Places

THREADS = 2


def curate_command(places: Places, world: World, arguments: Sequence[str]) -> Mapping[str, object]:
    """`curate-all`: every proposal, with the turns that its statement is from, and what was left out. For a home whose
    daemon has ended, in which memd told no session anything."""
    stores = Stores(places.data, world, registry.info())
    try:
        with closing(JobWorker(THREADS)) as reader:
            counter = EvidenceCounter(stores, lambda captures: {}, at_head)
            curator = Curator(stores, counter, seed_thresholds, world.now(), Earlier([]), reader)
            pools = curated_pools(stores, lambda pool: False)
            proposed = [
                {
                    "statement": proposal.told.statement,
                    "layer": proposal.told.layer,
                    "confidence": proposal.told.confidence,
                    "evidence": [(each.type, each.ref) for each in proposal.told.evidence],
                    "turns": [span.turn for span in proposal.records[0].provenance.spans],
                }
                for proposal in curator.proposals(pools)
            ]
    finally:
        stores.close()
    return {"proposals": proposed, "left_out": dict(curator.left_out), "read": curator.read}
