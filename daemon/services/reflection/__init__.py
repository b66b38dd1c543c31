"""Statements of other readers of a session: its agent, or a model that the user configured (W4)."""
