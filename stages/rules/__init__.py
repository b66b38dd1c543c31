"""The write path's rules as data: cue words, prototypes, key rules. No code."""
