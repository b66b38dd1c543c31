"""Changes that the user makes to records: undo, correct, restore, hide, pin, decide on proposals."""
