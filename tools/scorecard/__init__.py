"""docs/scorecard.md from the public logs in ../shared/data; `make scorecard` runs it."""
