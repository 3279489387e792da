"""`triton-prep bench`: the record of a run, its reports, and what changed since an earlier one. Headless."""
