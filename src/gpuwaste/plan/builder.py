"""From a submission to a plan: candidates, each read as sbatch reads it, checked, and scored.

External sources are passed as functions: `predict` queries the model, `program` the estimators of a known program,
`probe` slurmctld, `expect` the queue, `queued` the user's jobs in it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from gpuwaste.advice.predict.prediction_types import RequestChange, TargetPrediction
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.fields import Interval
from gpuwaste.jobs.history.job_names import normal_name
from gpuwaste.jobs.program_estimate import ProgramEstimate
from gpuwaste.ledger.reports.report_types import FindingRow
from gpuwaste.ledger.right_size.size_types import RightSize
from gpuwaste.plan.candidates import RequestCandidate, all_candidates
from gpuwaste.plan.outlook import cost_of, end_of, misfit, risk_of, with_program
from gpuwaste.plan.plan_document import PlanCandidate, PlanDocument, PlanGoal, Status, choose, meets
from gpuwaste.plan.plan_request import PlannedSubmission, PlanRequest
from gpuwaste.plan.request_limits import problems, waits
from gpuwaste.plan.user_site import QueuedJobs, Site
from gpuwaste.slurm.site.site_defaults import SiteDefaults
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.slurm.submit.sbatch_options import Given
from gpuwaste.slurm.submit.sbatch_run import DryRun

Expected = tuple[Interval, Interval]
"""When a job starts, and when it ends."""
Predict = Callable[[Sequence[JobRequest]], "list[Predicted]"]
Probe = Callable[[Sequence[str]], DryRun]
Queued = Callable[[str], QueuedJobs]
Programs = Callable[[Sequence[PlanRequest]], Sequence[ProgramEstimate | None]]
Sizes = Callable[[], Sequence[RightSize]]
Expect = Callable[[Sequence[JobRequest]], Sequence[Expected | None]]

_UNTESTED: Final = DryRun()


@dataclass(frozen=True, slots=True)
class Predicted:
    """The prediction for one request: targets and smaller requests."""

    targets: tuple[TargetPrediction, ...] = ()
    changes: tuple[RequestChange, ...] = ()


@dataclass(frozen=True, slots=True)
class Sources:
    """The external sources; one that fails gives no values, and adds a note."""

    probe: Probe
    predict: Predict = lambda requests: [Predicted() for _ in requests]
    expect: Expect = lambda requests: [None for _ in requests]
    queued: Queued = lambda _: QueuedJobs()
    program: Programs = lambda asked: [None for _ in asked]
    sizes: Sizes = tuple


@dataclass(slots=True)
class _Draft:
    candidate: RequestCandidate
    asked: PlanRequest
    tested: DryRun = _UNTESTED
    unchecked: str = ""
    refused: str = ""
    expected: Expected | None = None
    reasons: list[str] = field(default_factory=list)

    @property
    def submits(self) -> bool:
        return not self.candidate.advice and not self.refused


def build_plan(
    submission: PlannedSubmission, site: Site, sources: Sources, goal: PlanGoal, deadline: int | None = None
) -> PlanDocument:
    """Return the plan of a submission. Raises ParseError and UsageError for what sbatch would reject unchanged."""
    components = submission.read()
    notes = list(site.notes)
    request, options = components[0]
    first = _asked(request, site, options)
    queued, sizes = _queue_of(request.name, sources, notes), _sizes_of(first.request, sources, notes)
    first = replace(_predicted([first], sources, notes)[0], queued=queued, sizes=sizes)
    if len(components) > 1:
        notes.append(f"a het job of {len(components)} components: only the job as requested is checked")
        drafts = [_Draft(RequestCandidate("as_asked", "as requested"), first)]
    else:
        drafts = [_draft(submission, candidate, first) for candidate in all_candidates(first)]
        _predict_others(drafts, sources, notes)
    for draft in drafts:
        _check(draft, submission, sources.probe)
    _expect(drafts, sources, submission.at, notes)
    found = [_shown(number, draft) for number, draft in enumerate(sorted(drafts, key=_last), 1)]
    best = choose(found, goal, deadline)
    return PlanDocument(
        at=submission.at,
        user=submission.user,
        name=request.name,
        script=submission.file,
        goal=goal,
        deadline=deadline,
        chosen=best.number if best else None,
        meets_deadline=meets(best, deadline) if best and deadline is not None else None,
        candidates=found,
        notes=notes,
    )


def _asked(
    request: JobRequest, site: Site, options: Mapping[str, Given], like: PlanRequest | None = None
) -> PlanRequest:
    completed = SiteDefaults.of(site.partitions.values(), site.config).completed(request)
    made = PlanRequest(completed, options, site)
    return replace(made, targets=like.targets, changes=like.changes, program=like.program) if like else made


def _draft(submission: PlannedSubmission, candidate: RequestCandidate, first: PlanRequest) -> _Draft:
    if candidate.advice or not candidate.options:
        return _Draft(candidate, first)
    try:
        ((request, options),) = submission.read(candidate.options)
    except GpuwasteError as error:
        return _Draft(candidate, first, refused=str(error))
    return _Draft(candidate, _asked(request, first.site, options, first))


def _predict_others(drafts: Sequence[_Draft], sources: Sources, notes: list[str]) -> None:
    """Predict the changed requests: a shorter limit has a different risk."""
    others = [draft for draft in drafts if draft.submits and draft.candidate.options]
    if others and (others[0].asked.targets or others[0].asked.program):
        for draft, asked in zip(others, _predicted([one.asked for one in others], sources, notes), strict=True):
            draft.asked = asked


def _predicted(asked: Sequence[PlanRequest], sources: Sources, notes: list[str]) -> list[PlanRequest]:
    try:
        found = sources.predict([one.request for one in asked])
    except GpuwasteError as error:
        if (said := f"no prediction: {error}") not in notes:
            notes.append(said)
        found = [Predicted(one.targets, one.changes) for one in asked]  # of the original request
    told = [replace(one, targets=p.targets, changes=p.changes) for one, p in zip(asked, found, strict=True)]
    return [with_program(one, estimate) for one, estimate in zip(told, sources.program(told), strict=True)]


def _queue_of(name: str, sources: Sources, notes: list[str]) -> Callable[[], QueuedJobs]:
    def ask() -> QueuedJobs:
        try:
            return sources.queued(name)
        except GpuwasteError as error:
            notes.append(f"cannot read your queued jobs: {error}")
            return QueuedJobs()

    return ask


def _sizes_of(request: JobRequest, sources: Sources, notes: list[str]) -> tuple[FindingRow, ...]:
    """Return the findings about such jobs: the same name, number of GPUs and type; any type where none is requested."""
    if not request.gpus or not request.name:
        return ()
    try:
        found = sources.sizes()
    except GpuwasteError as error:
        notes.append(f"the sizes of past runs are unknown: {error}")
        return ()
    name = normal_name(request.name)
    return tuple(
        one.finding
        for one in found
        if one.name == name and one.gpus == request.gpus and request.gpu_type in {"", one.gpu_type}
    )


def _check(draft: _Draft, submission: PlannedSubmission, probe: Probe) -> None:
    if not draft.submits:
        draft.reasons = [draft.refused] if draft.refused else []
        return
    draft.reasons = [*problems(draft.asked), *misfit(draft.asked)]
    try:
        draft.tested = probe(submission.with_options(draft.candidate.options))
    except GpuwasteError as error:
        draft.unchecked = str(error)
    if draft.tested.rejected:
        draft.reasons.append(f"Slurm: {draft.tested.rejected}")


def _expect(drafts: Sequence[_Draft], sources: Sources, at: int, notes: list[str]) -> None:
    """Set the expectations of the valid ones; the queue they are based on is a little older than the plan."""
    valid = [draft for draft in drafts if draft.submits and not draft.reasons]
    if not valid:
        return
    try:
        found = sources.expect([_owned(draft.asked) for draft in valid])
    except GpuwasteError as error:
        notes.append(f"no expected start from the queue: {error}")
        return
    for draft, expected in zip(valid, found, strict=True):
        if expected:
            start, end = expected
            begins, ends = start.not_before(at), end.not_before(at)
            draft.expected = begins, end_of(draft.asked, begins, ends)


def _owned(asked: PlanRequest) -> JobRequest:
    """Return the request with the account and the QOS whose limits apply to it."""
    return replace(asked.request, account=asked.account, qos=asked.qos)


def _last(draft: _Draft) -> int:
    """Return the sort key: those that can be submitted, advice, invalid ones; within each as proposed."""
    return 2 if draft.reasons else int(draft.candidate.advice)


def _shown(number: int, draft: _Draft) -> PlanCandidate:
    candidate, request = draft.candidate, draft.asked.request
    cost = cost_of(draft.asked, candidate.jobs)
    risk, name = risk_of(request, draft.asked.targets)
    start, end = draft.expected or (None, None)
    return PlanCandidate(
        number=number,
        kind=candidate.kind,
        title=candidate.title,
        options=list(candidate.options),
        text=candidate.text,
        needs=candidate.needs,
        status=_status(draft),
        reasons=draft.reasons or ([draft.unchecked] if draft.unchecked else []),
        waits=[] if draft.reasons or not draft.submits else waits(draft.asked),
        jobs=candidate.jobs,
        partition=request.partition,
        qos=draft.asked.qos,
        gpus=request.gpus,
        gpu_type=request.gpu_type,
        cpus=request.cpus,
        mem_b=request.mem_b,
        time_limit_s=request.time_limit_s,
        slurm_start=draft.tested.start,
        start=start,
        end=end if candidate.jobs == 1 else None,
        run_s=cost.run_s,
        gpu_hours=cost.gpu_hours,
        billing_hours=cost.billing_hours,
        risk=risk,
        risk_of=name,
        program=draft.asked.program,
    )


def _status(draft: _Draft) -> Status:
    if draft.reasons:
        return "invalid"
    if draft.candidate.advice:
        return "advice"
    return "unchecked" if draft.unchecked else "valid"
