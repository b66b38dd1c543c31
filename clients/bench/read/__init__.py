"""The read path measured: what is found, when it abstains, how fast, in how much memory."""
