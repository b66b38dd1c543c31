"""Importers: what other programs wrote down, as capture events. Each reads one form and accounts for every line of it.

`claude_code` reads Claude Code's session files, `git_log` the messages of a repository's commits; both give a
`transcript.Transcript`.
"""
