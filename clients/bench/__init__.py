"""The benchmark: a client that measures a daemon of its own, beside a floor measured in the same run."""
