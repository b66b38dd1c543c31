"""Large input: which of its items are worth most, its summary, and the passages behind a summary."""
