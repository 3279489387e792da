"""The engine: judges a learner's kernel. Knows no particular exercise."""
