"""The gains of wrapping by docs/explanation/wrappers.md; `make bench NAME=wrappers` writes this file."""

from typing import Final

JOB_RUN_S: Final = 1800
CHAIN_JOBS: Final = 7
MEMBERS: Final = 4
ROWS: Final[tuple[tuple[str, int, float | None, int, float, float, float, float], ...]] = (
    # way, seconds from an end to the next submission, fair share (None: the first job started at once), cases; then
    # as shares of the workflow's run time: mean, least and most gain over single jobs; the share that took longer
    ("vertical", 0, 0.01, 12, -0.013, -0.243, 0.1, 0.333),
    ("vertical", 0, 0.2, 12, -0.012, -0.203, 0.031, 0.083),
    ("vertical", 0, 0.3, 12, -0.002, -0.06, 0.024, 0.083),
    ("vertical", 0, 0.4, 12, 0, -0.038, 0.024, 0.083),
    ("vertical", 0, 0.5, 12, 0.003, 0, 0.022, 0),
    ("vertical", 0, 0.6, 12, 0.002, 0, 0.022, 0),
    ("vertical", 0, 0.7, 12, 0.002, 0, 0.022, 0),
    ("vertical", 0, 1.0, 12, 0.002, 0, 0.022, 0),
    ("vertical", 30, 0.01, 12, 0.006, -0.238, 0.105, 0.167),
    ("vertical", 30, 0.2, 12, 0.018, -0.178, 0.088, 0.083),
    ("vertical", 30, 0.3, 12, 0.022, -0.036, 0.035, 0.083),
    ("vertical", 30, 0.4, 12, 0.024, -0.012, 0.035, 0.083),
    ("vertical", 30, 0.5, 12, 0.027, 0.021, 0.035, 0),
    ("vertical", 30, 0.6, 12, 0.027, 0.021, 0.035, 0),
    ("vertical", 30, 0.7, 12, 0.027, 0.021, 0.035, 0),
    ("vertical", 30, 1.0, 12, 0.027, 0.021, 0.035, 0),
    ("vertical", 0, None, 8, 0.001, 0, 0.005, 0),
    ("vertical", 30, None, 8, 0.024, 0.024, 0.024, 0),
    ("horizontal", 0, 0.01, 12, -0.004, -0.038, 0, 0.167),
    ("horizontal", 0, 0.2, 12, -0.005, -0.051, 0, 0.25),
    ("horizontal", 0, 0.3, 12, -0.002, -0.025, 0, 0.083),
    ("horizontal", 0, 0.4, 12, -0.001, -0.014, 0, 0.083),
    ("horizontal", 0, 0.5, 12, 0, 0, 0, 0),
    ("horizontal", 0, 0.6, 12, 0, 0, 0, 0),
    ("horizontal", 0, 0.7, 12, 0, 0, 0, 0),
    ("horizontal", 0, 1.0, 12, 0, 0, 0, 0),
    ("horizontal", 0, None, 8, 0, 0, 0, 0),
)
