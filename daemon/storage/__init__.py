"""The append-only log and all files: journal, archive, LMDB environments, formats, backup. Knows no projection."""
