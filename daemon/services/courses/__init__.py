"""Courses of agents: a handbook is read, and its questions are asked again after growing times (O3)."""
