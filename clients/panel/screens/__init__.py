"""The panel's screens: a module each, with its routes in `ROUTES` and its templates beside it in `templates/`."""
