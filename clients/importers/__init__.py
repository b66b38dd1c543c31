"""Importers: what other programs wrote down, as capture events. Each reads one form and accounts for every line of it.

`claude_code`, `codex`, `pi` and `gemini` read agents' session files, `markdown` documents, `git_log` the messages of a
repository's commits; each gives a `transcript.Transcript`. `agents` knows where their files lie, `cursors` how far each
was imported. `memd_export` reads what `memd export` wrote.
"""
