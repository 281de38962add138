"""Waits predicted in the order of a log, and judged: what was known at a submission, baselines, a learnt correction."""
