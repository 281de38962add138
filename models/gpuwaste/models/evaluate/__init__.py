"""Evaluation that cannot flatter itself: our model and plain methods on the last part of a log, with intervals."""
