"""Reads of records: get, list, why, export; and their import."""
