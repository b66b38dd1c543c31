"""Measurements of the read path: relevance, abstention, latency, memory."""
