"""Verified grading: what the learner's wrapper launches is recorded, and replayed where the learner's code never runs.

recorder   in the runner (untrusted): notes launches, fills and copies of one call
record     the record as data: strict types, limits, validation; what the judge believes of it
replayer   a trusted process of its own: compiles the record's TTIR and performs its steps on the judge's memory
launchers  the device under the replayer
processes  the replayer and its like, started ahead
replay     the judge's side of one replay: memory, steps, comparison
verify     the judge's side of a grade: record every case, replay every case
measured   the judge's side of timing a replay
"""
