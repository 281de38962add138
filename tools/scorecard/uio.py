"""The sample of real sacct output, whose rows are NAME=VALUE cells, as a file that `sacct -P` would write."""

import csv
from pathlib import Path
from typing import Final

_COLUMNS: Final = (
    *("JobID", "JobIDRaw", "JobName", "User", "Account", "Partition", "State", "ExitCode", "Submit", "Start", "End"),
    *("ElapsedRaw", "TimelimitRaw", "ReqCPUS", "ReqMem", "ReqNodes", "NodeList", "AllocTRES", "MaxRSS", "Priority"),
)
_BAR: Final = "|"


def as_sacct(source: Path, target: Path) -> None:
    """Write `source` anew with a header and one column for each name; a cell that a row lacks is empty."""
    with source.open(encoding="utf-8", newline="") as lines:
        rows = [dict(cell.split("=", 1) for cell in row if "=" in cell) for row in csv.reader(lines)]
    texts = [_BAR.join(row.get(name, "").replace(_BAR, " ") for name in _COLUMNS) for row in rows]
    target.write_text("\n".join([_BAR.join(_COLUMNS), *texts, ""]), encoding="utf-8")
