"""Backups, retention, verification, rebuilds, disk usage, index commits."""
