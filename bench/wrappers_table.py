"""The table that `gpuwaste plan` advises by: what wrapping gained in the dynamic study, as a Python file."""

from pathlib import Path
from typing import Final

import duckdb

FILE: Final = Path(__file__).parents[1] / "src" / "gpuwaste" / "plan" / "wrapping_study.py"
_MEMBERS: Final = {"vertical": 1, "horizontal": 4}
"""Members of the workflows by which a way is judged: one chain as one job, four jobs beside each other."""
_PAUSES: Final = {"vertical": (0, 30), "horizontal": (0,)}
_AT_ONCE: Final = "first.first_wait_s = 0"
_QUERY: Final = """
    select own.notice_s, {share}, count(*), avg(own.gain), min(own.gain), max(own.gain), avg((own.gain < 0)::int)
    from dynamic own join dynamic first using ("case")
    where first.wrapper = 'single' and own.wrapper = '{way}' and own.members = {members} and {which}
        and own.notice_s in {pauses}
    group by all order by all"""


def write_table(db: duckdb.DuckDBPyConnection) -> None:
    """Write the file, from the view `dynamic`."""
    chunks, run_s = db.sql("select any_value(chunks), any_value(task_run_s) from dynamic").fetchall()[0]
    rows = []
    for way, members in _MEMBERS.items():
        for share, which in (("own.fair_share", "true"), ("null", _AT_ONCE)):
            pauses = f"({', '.join(map(str, _PAUSES[way]))})"
            found = db.sql(_QUERY.format(way=way, members=members, share=share, which=which, pauses=pauses)).fetchall()
            rows += [_row(way, *one) for one in found]
    FILE.write_text(TEXT.format(chunks=chunks, run_s=run_s, members=_MEMBERS["horizontal"], rows="".join(rows)))


def _row(way: str, pause_s: int, share: float | None, cases: int, *gains: float) -> str:
    return f'    ("{way}", {pause_s}, {share}, {cases}, {", ".join(f"{round(gain, 3) + 0:g}" for gain in gains)}),\n'


TEXT: Final = '''"""What wrapping gains by docs/explanation/wrappers.md; `make bench NAME=wrappers` writes this file."""

from typing import Final

JOB_RUN_S: Final = {run_s}
CHAIN_JOBS: Final = {chunks}
MEMBERS: Final = {members}
ROWS: Final[tuple[tuple[str, int, float | None, int, float, float, float, float], ...]] = (
    # way, seconds from an end to the next submission, fair share (None: the first job started at once), cases; then
    # as shares of the workflow's run time: mean, least and most gain over single jobs; the share that took longer
{rows})
'''
