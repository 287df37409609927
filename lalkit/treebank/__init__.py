"""Treebanks: trees that refuse to be wrong, their file formats, head rules and joint spans. No torch here."""
