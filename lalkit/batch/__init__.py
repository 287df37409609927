"""Sentences -> tensors: vocabularies, words over sub-words, collation, batches by token budget."""
