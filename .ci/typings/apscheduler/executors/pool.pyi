"""Executors on a pool of threads or processes."""

from apscheduler.executors.base import BaseExecutor

class ThreadPoolExecutor(BaseExecutor):
    def __init__(self, max_workers: int = 10, pool_kwargs: dict[str, object] | None = None) -> None: ...

class ProcessPoolExecutor(BaseExecutor):
    def __init__(self, max_workers: int = 10, pool_kwargs: dict[str, object] | None = None) -> None: ...
