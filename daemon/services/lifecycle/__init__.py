"""Strength, sleep, review and archiving of records."""
