"""The demo's sample session, written for memd: an invented developer, an invented service."""
