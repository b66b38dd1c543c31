"""Captures turned into records by the stages, in a worker process."""
