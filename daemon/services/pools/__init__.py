"""Which pool a folder belongs to, and which pools a question may read."""
