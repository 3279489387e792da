"""The files of a graded homework. Times stand in fields and files of their own: all else is equal from run to run."""
