"""The rungs of the four ladders, timed beside PyTorch on a GPU: `python -m benchmarks.ladders`."""
