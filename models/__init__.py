"""Local models: text to vectors, with weights that lie in this package. No network, no I/O but reading model files."""
