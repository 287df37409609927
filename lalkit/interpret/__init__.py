"""What a parse owes to its label heads."""
