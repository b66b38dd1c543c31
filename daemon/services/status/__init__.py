"""The state of the daemon on one screen."""
