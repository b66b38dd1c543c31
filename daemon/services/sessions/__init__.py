"""Reads of sessions: when each began and ended, and what came of it."""
