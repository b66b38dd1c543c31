"""The daemon process, the only code that opens the data folder."""
