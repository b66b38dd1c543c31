"""`memd bench peers`: other memories and bare libraries on the same texts, vectors and questions, in the same run."""
