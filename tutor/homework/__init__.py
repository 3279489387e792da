"""Homework: many learners' files, graded by the same grader, as results for the class and for each learner.

assignment    what is asked, for how many points (YAML)      submissions, archives    whose file is for which exercise
work, places  what is to be graded, and where it runs        journal                  what has been graded already
cluster       a place of many machines (Ray)                 on_node                  what runs on each of them
marking       from verdicts to points                        results/                 the files that are written
"""
