"""Runs of the caller's programs: /v1/programs/runs."""

from dataclasses import dataclass

from gpuwaste.core.fields import Name
from gpuwaste.core.scope import Scope
from gpuwaste.jobs.program_estimate import ProgramRunsAnswer
from gpuwaste.show.resource import Reading, Resource


@dataclass(frozen=True)
class ProgramRunsQuestion:
    """Of which program: its fingerprint."""

    program: Name


def program_runs(reading: Reading, scope: Scope, question: ProgramRunsQuestion) -> ProgramRunsAnswer:
    """Return the caller's own completed runs whose comment names this program's fingerprint, the newest first."""
    from gpuwaste.estimate.program_runs_reads import ProgramRuns

    return reading.get(ProgramRuns).of(scope, question.program)


RESOURCES = (
    Resource(
        path="/v1/programs/runs",
        question=ProgramRunsQuestion,
        document=ProgramRunsAnswer,
        read=program_runs,
        standby=True,
    ),
)
