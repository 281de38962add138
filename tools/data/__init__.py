"""Public logs and captures that tests and the scorecard read, and that are not part of the repository."""
