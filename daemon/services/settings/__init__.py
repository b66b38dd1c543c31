"""The settings in force, and their change while memd runs."""
