"""The write path: extract, enrich, embed, route, scan, reconcile. Each stage is a pure callable `(Batch) -> Batch`."""
