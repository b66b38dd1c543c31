"""Who may read what: passes, grants, and the scope of a request."""
