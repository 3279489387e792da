"""Questions about speed that only a GPU can answer, each with the variants that are measured for it."""
