"""Carries partitions of shared projects between the daemon and a remote (H1, H2)."""
