"""Everything that talks to memd. Clients know `protocol` and each other, never the daemon, the stages or the models."""
