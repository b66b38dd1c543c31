"""How a job is run."""
