"""What travels and what is stored: frozen values, their bytes, their errors. Imports nothing of ours, does no I/O."""
