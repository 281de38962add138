"""What the last runs of such jobs needed, as the hub found: a smaller GPU, fewer CPUs, less memory, a shorter limit.

The findings are those of `gpuwaste report` (ledger/right_size). A candidate is predicted and checked as any other.
"""

import math
import shlex
from collections.abc import Iterable
from typing import Final

from gpuwaste.ledger.reports.report_types import FindingRow
from gpuwaste.plan.candidates import RequestCandidate
from gpuwaste.plan.candidates._gpu_option import typed_gpus
from gpuwaste.plan.plan_request import PlanRequest

RANK: Final = 5
_TITLES: Final = {
    "gpu_larger_than_needed": "smaller GPU",
    "cpus_more_than_needed": "fewer CPUs",
    "memory_more_than_needed": "less memory",
    "time_limit_longer_than_needed": "shorter time limit",
}
_DIRECTIVE: Final = "#SBATCH "
_DIGITS: Final = 5


def propose(asked: PlanRequest) -> Iterable[RequestCandidate]:
    """Return a request for each finding about such jobs."""
    for finding in asked.sizes:
        title, words = _TITLES.get(finding.kind), _options(asked, finding)
        if title is not None and words:
            gpu = finding.kind == "gpu_larger_than_needed" and finding.fixes
            text = f"{finding.title}; {finding.fixes[0].text}" if gpu else finding.title
            yield RequestCandidate("past_runs", title, words, text)


def _options(asked: PlanRequest, finding: FindingRow) -> tuple[str, ...]:
    lines = [line.removeprefix(_DIRECTIVE) for line in finding.fix if line.startswith(_DIRECTIVE)]
    if finding.kind == "cpus_more_than_needed":
        return _cpus(asked, finding.evidence.get("enough_cpus"))
    kind = finding.evidence.get("gpu_type")
    if finding.kind == "gpu_larger_than_needed" and lines and isinstance(kind, str):
        lines[:1] = typed_gpus(asked, kind) or lines[:1]  # the submission may have another option than the past runs
    return tuple(word for line in lines for word in shlex.split(line))


def _cpus(asked: PlanRequest, enough: object) -> tuple[str, ...]:
    """Return the CPUs per task that give as many in all; none where the submission does not request them so."""
    given = asked.options.get("cpus-per-task")
    text, whole = (given.value if given else None) or "", asked.request.cpus
    if not isinstance(enough, int) or not whole or not text.isascii() or not text.isdecimal() or len(text) > _DIGITS:
        return ()
    each = math.ceil(enough * int(text) / whole)
    return (f"--cpus-per-task={each}",) if 0 < each < int(text) else ()
