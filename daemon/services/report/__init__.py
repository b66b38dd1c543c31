"""The weekly report: what happened in a week and what needs the user."""
