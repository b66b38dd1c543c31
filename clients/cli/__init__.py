"""The `memd` command: a client like any other."""
