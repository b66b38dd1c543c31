"""The scheduler that runs in a thread of its own."""

from apscheduler.schedulers.base import BaseScheduler

class BackgroundScheduler(BaseScheduler): ...
