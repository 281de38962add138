"""Verdicts: the advice at submission, the outcome, and the score."""
