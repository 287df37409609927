"""Scores of parses, tests of differences, and a record of where a number comes from."""
