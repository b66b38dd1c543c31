"""The embedding model: which one searches, and the change to another."""
