"""What wrapping gains by docs/explanation/wrappers.md; `make bench-wrappers` writes this file."""

from typing import Final

JOB_RUN_S: Final = 1800
CHAIN_JOBS: Final = 7
MEMBERS: Final = 4
ROWS: Final[tuple[tuple[str, int, float | None, int, float, float, float, float], ...]] = (
    # way, seconds from an end to the next submission, fair share (None: the first job started at once), cases; then
    # as shares of the workflow's run time: mean, least and most gain over single jobs; the share that took longer
    ("vertical", 0, 0.01, 12, -0.0127, -0.2429, 0.1, 0.3333),
    ("vertical", 0, 0.2, 12, -0.0115, -0.2026, 0.0306, 0.0833),
    ("vertical", 0, 0.3, 12, -0.0022, -0.0598, 0.0238, 0.0833),
    ("vertical", 0, 0.4, 12, -0.0004, -0.0381, 0.0238, 0.0833),
    ("vertical", 0, 0.5, 12, 0.0027, 0, 0.0222, 0),
    ("vertical", 0, 0.6, 12, 0.0019, 0, 0.0222, 0),
    ("vertical", 0, 0.7, 12, 0.0019, 0, 0.0222, 0),
    ("vertical", 0, 1.0, 12, 0.0019, 0, 0.0222, 0),
    ("vertical", 30, 0.01, 12, 0.0055, -0.2381, 0.1048, 0.1667),
    ("vertical", 30, 0.2, 12, 0.0182, -0.1785, 0.0882, 0.0833),
    ("vertical", 30, 0.3, 12, 0.0225, -0.0356, 0.0348, 0.0833),
    ("vertical", 30, 0.4, 12, 0.0241, -0.0118, 0.0348, 0.0833),
    ("vertical", 30, 0.5, 12, 0.0269, 0.0214, 0.0348, 0),
    ("vertical", 30, 0.6, 12, 0.0269, 0.0214, 0.0348, 0),
    ("vertical", 30, 0.7, 12, 0.0269, 0.0214, 0.0348, 0),
    ("vertical", 30, 1.0, 12, 0.0271, 0.0214, 0.0348, 0),
    ("vertical", 0, None, 8, 0.0006, 0, 0.0045, 0),
    ("vertical", 30, None, 8, 0.0236, 0.0236, 0.0236, 0),
    ("horizontal", 0, 0.01, 12, -0.0044, -0.0381, 0, 0.1667),
    ("horizontal", 0, 0.2, 12, -0.0051, -0.0507, 0, 0.25),
    ("horizontal", 0, 0.3, 12, -0.0021, -0.0251, 0, 0.0833),
    ("horizontal", 0, 0.4, 12, -0.0012, -0.0143, 0, 0.0833),
    ("horizontal", 0, 0.5, 12, 0, 0, 0, 0),
    ("horizontal", 0, 0.6, 12, 0, 0, 0, 0),
    ("horizontal", 0, 0.7, 12, 0, 0, 0, 0),
    ("horizontal", 0, 1.0, 12, 0, 0, 0, 0),
    ("horizontal", 0, None, 8, 0, 0, 0, 0),
)
