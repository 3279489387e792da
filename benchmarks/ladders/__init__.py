"""The rungs of the three ladders, timed beside PyTorch on a GPU: `python -m benchmarks.ladders`."""
