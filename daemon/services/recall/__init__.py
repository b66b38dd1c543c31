"""Answers: HOT from the cache, WARM by search, DEEP from archive and history. No model runs in here."""
