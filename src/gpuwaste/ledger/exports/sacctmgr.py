"""sacctmgr: a script for sh that stores jobstats' text of each run in its AdminComment in slurmdbd.

Running it needs AdminLevel Administrator; gpuwaste itself does not run it. AdminComment is replaced: by then the hub
has read and stored the mark of the submit advice.
"""

import math
import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from gpuwaste.ledger.exports.jobstats import admin_comment
from gpuwaste.ledger.reports.job_types import JobDocument, RunRow

TITLE: Final = "sacctmgr commands that write jobstats' text to AdminComment"
# Before 23.02 sacctmgr wrote every value in lower case, which base64 does not survive (Slurm's CHANGELOG, 23.02.0rc1).
HEADER: Final = (
    """case "$(sacctmgr -V)" in slurm*" "[0-9][0-9].*) ;; """
    """*) echo "gpuwaste: sacctmgr -V does not print a release of Slurm: nothing is written" >&2; exit 1 ;; esac\n"""
    """case "$(sacctmgr -V)" in *" 1"[0-9].*|*" 2"[0-2].*) """
    """echo "gpuwaste: sacctmgr before Slurm 23.02 changes the text to lower case: nothing is written" >&2; """
    """exit 1 ;; esac\n"""
)


def lines(runs: Sequence[RunRow], document: JobDocument) -> Iterator[str]:
    """Yield one command for the last run of each id: sacctmgr names a job by its id, and changes its last run."""
    newest: dict[tuple[str, str], float] = {}
    for run in document.runs:
        key = run.cluster, run.printed_id
        newest[key] = max(newest.get(key, 0), math.inf if run.start is None else run.start)
    for run in runs:
        text = admin_comment(run, document.thresholds.min_coverage)
        if text and run.start == newest[run.cluster, run.printed_id]:
            where = f"jobid={run.printed_id}", f"cluster={run.cluster}"
            yield shlex.join(["sacctmgr", "-i", "modify", "job", "where", *where, "set", f"AdminComment={text}"])
