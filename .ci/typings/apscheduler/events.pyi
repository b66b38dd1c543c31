"""What a listener is told about a job that ran."""

from datetime import datetime

EVENT_JOB_EXECUTED: int
EVENT_JOB_ERROR: int
EVENT_JOB_MISSED: int
EVENT_JOB_MAX_INSTANCES: int
EVENT_ALL: int

class SchedulerEvent:
    code: int
    alias: str | None

class JobEvent(SchedulerEvent):
    job_id: str
    jobstore: str

class JobExecutionEvent(JobEvent):
    scheduled_run_time: datetime
    retval: object
    exception: BaseException | None
    traceback: str | None
