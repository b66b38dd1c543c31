"""When a job is run."""
