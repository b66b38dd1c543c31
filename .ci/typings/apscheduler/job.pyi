"""One scheduled job."""

from collections.abc import Callable
from datetime import datetime

from apscheduler.triggers.base import BaseTrigger

class Job:
    id: str
    name: str
    func: Callable[..., object]
    trigger: BaseTrigger
    next_run_time: datetime | None
    pending: bool
    def modify(self, **changes: object) -> Job: ...
    def pause(self) -> Job: ...
    def resume(self) -> Job | None: ...
    def remove(self) -> None: ...
