"""The profile that an agent is given at each turn, and the log of what it was given."""
