"""Parse texts of any size: read windows of sentences, share them out as batches, write a journal to resume from."""
