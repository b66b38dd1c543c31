"""Permanent removal: closure, redaction, residue scan, compaction."""
