"""The memory as a whole: what is in it, and when it changed."""
