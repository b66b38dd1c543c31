"""A remote model as a reader of ended sessions (W4): off unless the user switches it on."""
