"""`memd bench write`: what the write path must show, each part a function from a setting to figures."""
