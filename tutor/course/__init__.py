"""The course files as values."""
