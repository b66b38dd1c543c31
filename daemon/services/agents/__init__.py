"""What became of the tasks of agents, and which agent fits a task (O1, O2)."""
