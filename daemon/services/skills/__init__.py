"""Skills: repeated successful procedures, offered to the user as files (K1-K4)."""
