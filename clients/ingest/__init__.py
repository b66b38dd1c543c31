"""Large input: files of several formats as parts, the negotiation about many items, and the delivery."""
