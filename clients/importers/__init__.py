"""Importers: other programs' files as capture events; each reads one format into a `transcript.Transcript`."""
