"""Importers: other programs' files as capture events. Each importer reads one format and accounts for every line.

`claude_code`, `codex`, `pi` and `gemini` read agents' session files, `markdown` documents, `git_log` the messages of a
repository's commits; each returns a `transcript.Transcript`. `agent_files` finds the files, `cursors` stores how far
each was imported. `memd_export` reads the output of `memd export`.
"""
