"""The grader against the truth, on random mutations of the reference solutions: `python -m benchmarks.mutation`."""
