"""Folds of the journal: each with its own `applied_seq`, each disposable, none ever written by anyone else."""
