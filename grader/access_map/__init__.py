"""Which program loads and stores which element: recorded from the interpreter on a small case.

`recorder` and `facts` work in the runner, `answer` in the judge; `model` and `runs` are for whoever shows the map, and
import neither torch nor NumPy.
"""
