"""Sharing a project's memory (H1, H2): the lines that leave, and those that arrive."""
