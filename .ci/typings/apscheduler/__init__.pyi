"""APScheduler 3.11: the background scheduler, its triggers and its events."""

__version__: str
