"""Measurements of the write path: correctness of captures and records, secrets, speed."""
