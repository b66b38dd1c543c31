"""`memd hub`: the gateway between memd and a PostgreSQL that holds the pools of an organisation (H3)."""
