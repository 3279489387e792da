"""Every stage of a kernel's compilation as lines that know which line of the learner's file they come from."""
