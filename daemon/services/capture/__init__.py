"""Captures on their way into the archive."""
