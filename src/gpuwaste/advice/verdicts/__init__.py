"""Verdicts: what was said at submission, how it came out, and the score."""
