"""Evaluation on unseen data: our model and simple methods on the last part of a log, with intervals."""
