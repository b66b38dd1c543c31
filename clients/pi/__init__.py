"""The files of a `.pi` folder: its layout, the fold of its patches, the block in AGENTS.md (G2, G5)."""
