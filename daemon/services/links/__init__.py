"""Links from memories to the parts of repository documents they came from."""
