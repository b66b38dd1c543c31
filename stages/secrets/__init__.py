"""Secrets: the rule sets as data beside this file, and the one scan that the door, the scan stage and others use."""
