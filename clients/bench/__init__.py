"""The benchmark: a client that measures temporary daemons, where possible beside a floor of the same run."""
