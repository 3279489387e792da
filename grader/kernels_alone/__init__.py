"""Do the kernels alone give the answer? The question that a learner's process cannot answer by itself.

In a fresh runner the learner's function is called, and what it does is recorded: launches, fills, copies (recorder).
Then a process that never runs the learner's Python carries the record out on new values (replay): it knows only the
kernels, taken from the file's text, and only if they hold nothing but Triton's language (plain). What PyTorch, NumPy,
a cache or a patched runner computed is not there. This is how the interpreter's verdict is made proof.

On a GPU the interpreter is asked first as well. A file that insists on CUDA gets a stand-in for it there, and where
even that does not do, the launches are recorded and replayed on the GPU (by_replay).
"""
