"""Times of the command line against the installed sacct, which prints how it reads -S before it asks accounting.

What differs for a reason: a day that its month lacks (02/30) is refused here and is the next month's for sacct.
"""

import os
import re
import subprocess
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from gpuwaste.cli.time_options import parse_time
from gpuwaste.core.errors import UsageError
from gpuwaste.testing.patience import patient

pytestmark = pytest.mark.cluster
ZONE = "Europe/Oslo"
READ = re.compile(r"(?:from|instant) (\w+ \w+ +\d+ [\d:]+ \d{4})")
CONFIGURATION = """ClusterName=none
SlurmctldHost=localhost
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=1
NodeName=node1
PartitionName=all Nodes=ALL
"""
DAYS = ("01/31", "12/01", "0131", "013125", "06/01/25", "6.1.25", "06.01", "2026-01-31", "today", "tomorrow")
NOW = ("now", "now-7days", "now-90", "now - 2hours", "now+1hour", "NOW-1week", "uts1700000000")
CLOCKS = ("08:15", "8:15", "00:00:59", "1:05PM", "12:10am", "12:10 pm", "0:30pm", "noon", "midnight", "fika")
WRONG = (
    "never",
    "13:00PM",
    "24:00",
    "1:5",
    "2026-13-01",
    "31/12",
    "601",
    "06/01/25/08:15",
    "2026-01-31T8:30:5",
    "noon x",
)


@pytest.fixture
def sacct(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which sacct reads times and finds no accounting."""
    (tmp_path / "slurm.conf").write_text(CONFIGURATION)
    return {**os.environ, "SLURM_CONF": str(tmp_path / "slurm.conf"), "TZ": ZONE, "LC_ALL": "C"}


def read_by_sacct(env: dict[str, str], text: str) -> datetime | None:
    """Return the local time that sacct reads, None where it refuses."""
    argv = ["sacct", "-v", f"--starttime={text}", "--endtime=now+2days"]
    said = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=patient(60)).stderr
    found = READ.search(said)
    assert found or "Invalid time" in said, said
    return datetime.strptime(found[1], "%a %b %d %H:%M:%S %Y").replace(tzinfo=ZoneInfo(ZONE)) if found else None


@pytest.mark.parametrize("day", ["", *DAYS])
def test_a_time_is_what_sacct_reads(sacct: dict[str, str], day: str) -> None:
    """A day and a clock time, each alone, and both in every order and with every separator, give sacct's instant."""
    joined = [f"{day}{between}{clock}" for clock in CLOCKS for between in ("T", " ", "-")] if day else [*NOW]
    for text in (*joined, *(f"{clock} {day}".strip() for clock in CLOCKS), *([day] if day else [])):
        before = datetime.now(ZoneInfo(ZONE)).replace(microsecond=0)
        read = read_by_sacct(sacct, text)
        assert read is not None, text
        low, high = parse_time(text, before), parse_time(text, datetime.now(ZoneInfo(ZONE)))
        assert low <= read.timestamp() <= high, text


@pytest.mark.parametrize("text", WRONG)
def test_what_sacct_refuses_is_refused(sacct: dict[str, str], text: str) -> None:
    """What is no time for sacct is none here."""
    assert read_by_sacct(sacct, text) is None
    with pytest.raises(UsageError, match="expected"):
        parse_time(text)
