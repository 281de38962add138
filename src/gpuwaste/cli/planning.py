"""What `gpuwaste plan` does: reads the submission, queries Slurm, model and hub; prints, saves or submits the plan."""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from msgspec import structs, to_builtins

from gpuwaste.cli import asking
from gpuwaste.cli.hub_access import COMPILING_S, hub_client
from gpuwaste.cli.options import EXIT_NO_DATA, EXIT_OVER, print_own
from gpuwaste.cli.own_program import OwnProgram, own_program, refusals
from gpuwaste.cli.time_options import parse_time
from gpuwaste.cli.words import require_job
from gpuwaste.core.codec import convert
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError, NoDataError, ParseError, UsageError, WireError
from gpuwaste.core.groups import unix_groups, user_name
from gpuwaste.core.job_states import QUEUED
from gpuwaste.core.text import harmless
from gpuwaste.jobs.program_estimate import ProgramEstimate
from gpuwaste.ledger.right_size.size_types import RightSize, RightSizesDocument
from gpuwaste.plan.builder import Expected, Predicted, Sources, build_plan
from gpuwaste.plan.outlook import WALLTIME, history_of
from gpuwaste.plan.plan_document import ExpectAnswer, PlanCandidate, PlanDocument, PlanGoal
from gpuwaste.plan.plan_file import (
    candidate_of,
    plan_file,
    read_plan,
    read_script,
    submit_candidate,
    to_record,
    unchanged,
    write_plan,
)
from gpuwaste.plan.plan_request import PlannedSubmission, PlanRequest
from gpuwaste.plan.plan_text import clock, plan_text
from gpuwaste.plan.user_site import QueuedJobs, queued_jobs, read_site
from gpuwaste.plan.wait_watch import StartForecast, moved, reason_words
from gpuwaste.plan.wrapping import LONGEST_S
from gpuwaste.show.terminal_cells import one_line
from gpuwaste.slurm.clients.command_client import CommandClient
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.slurm.submit.sbatch_components import read_argv
from gpuwaste.slurm.submit.sbatch_run import DryRun, dry_run, submit

_HERE: Final = "-"
_UNNAMED: Final = "sbatch"
"""The name of a job whose script came from standard input."""
EVERY_S = 60.0
_FORMAT = "%S|%r|%T"
_COLUMNS = 3
Look = Callable[[], StartForecast]


def make_plan(config: Config, options: argparse.Namespace) -> int:
    """Plan and print. Exit code 3 where no candidate is valid, 4 where none meets the deadline."""
    submission = _submission(options.words)
    deadline = None if options.deadline is None else parse_time(options.deadline)
    found = _planned(config, submission, options.model, options.goal, deadline)
    if options.take is not None:
        found = _taken(found, options.take)
    if options.output is not None:
        write_plan(options.output, plan_file(submission, str(Path.cwd()), found))
    print_own(found, plan_text, as_json=options.json)
    if found.chosen is None:
        return EXIT_NO_DATA
    return EXIT_OVER if found.meets_deadline is False else 0


def plan_of_text(
    config: Config, script: str, options: Sequence[str], goal: PlanGoal, deadline: int | None
) -> PlanDocument:
    """Plan a script that is given as text, with options of sbatch. Raises UsageError, and as make_plan does.

    sbatch --test-only reads it from a file in a private folder, which is removed; the file has the name of such jobs.
    """
    if tuple(read_argv([*options, _HERE]).rest) != (_HERE,):
        raise UsageError("plan: options: expected options of sbatch only, the script is given as text")
    data = script.encode("utf-8", "backslashreplace")
    with tempfile.TemporaryDirectory(prefix="gpuwaste-plan-") as folder:
        file = Path(folder) / _UNNAMED
        file.write_bytes(data)
        submission = PlannedSubmission((*options, str(file)), data, os.environ, _user(), int(time.time()))
        found = _planned(config, submission, None, goal, deadline, named=False)
    return structs.replace(found, script="")


def _planned(
    config: Config,
    submission: PlannedSubmission,
    model: Path | None,
    goal: PlanGoal,
    deadline: int | None,
    *,
    named: bool = True,
) -> PlanDocument:
    """Plan a submission; `named` is False for a script that is a text: no file that it names is read then."""
    groups = None if os.getuid() == 0 else unix_groups(submission.user) or None
    site = read_site(_client(config), submission.user, os.getuid(), groups)
    folder = Path(submission.file).parent if submission.file and named else None
    own, said = own_program(config, submission.data.decode("utf-8", "replace"), _comment(submission), folder)
    found = build_plan(submission, site, _sources(config, model, submission.user, own), goal, deadline)
    said += refusals([one.program for one in found.candidates if one.status != "advice"])
    return structs.replace(found, notes=[*found.notes, *said]) if said else found


def _comment(submission: PlannedSubmission) -> str:
    (request, _), *_ = submission.read()
    return request.comment


def _programs(own: OwnProgram | None, asked: Sequence[PlanRequest]) -> list[ProgramEstimate | None]:
    """Return the estimates of the program by request; a partition with one type of GPU determines the type."""
    if own is None:
        return [None for _ in asked]
    found: list[ProgramEstimate | None] = []
    for one in asked:
        types = list(one.site.types(one.partition))
        only = types[0] if len(types) == 1 else ""
        found.append(own.estimate(one.request, history_of(one.target(WALLTIME)), only))
    return found


def submit_plan(config: Config, options: argparse.Namespace) -> int:
    """Submit the chosen or taken candidate of a plan file, and note its jobs there."""
    path: Path = options.submit
    plan = read_plan(path)
    one = candidate_of(path, plan, options.take)
    submission = unchanged(path, plan, _user(), int(time.time()))
    conf, timeout_s = config.common.slurm_conf, config.common.slurm_timeout_s
    ids = submit_candidate(submission, one, lambda words: submit(words, timeout_s, conf))
    write_plan(path, structs.replace(plan, submitted=ids, submitted_number=one.number))
    recorded = _recorded(config, plan.plan.name, one, ids)
    if options.json:
        from gpuwaste.show.machine_formats import to_json

        told = {"document": "plan_submitted", "candidate": one.number, "jobs": ids, "recorded": recorded}
        sys.stdout.write(to_json(told))
    else:
        shown = ", ".join(map(str, ids))
        sys.stdout.write(f"Submitted batch job{'s' if len(ids) > 1 else ''} {shown} (candidate {one.number})\n")
    return 0


def _recorded(config: Config, name: str, one: PlanCandidate, ids: Sequence[int]) -> bool:
    """Record what was planned at the hub; where that fails the jobs stay submitted and a note gives the error."""
    try:
        hub_client(config).record_plan(to_builtins(to_record(name, one, ids)))
    except GpuwasteError as error:
        sys.stderr.write(f"gpuwaste: note: the plan is not recorded at the hub: {one_line(str(error))}\n")
        return False
    return True


def _submission(words: Sequence[str]) -> PlannedSubmission:
    """Read the script. Raises UsageError, and ParseError for one that sbatch would refuse."""
    line = read_argv(words)
    if line.wrap is None and not line.rest:
        raise UsageError("plan: no script: give a batch script, or --wrap=COMMAND after --")
    file = line.rest[0] if line.wrap is None else ""
    if file == _HERE:
        raise UsageError("plan: standard input cannot be submitted later: write the script to a file")
    found = PlannedSubmission(tuple(words), read_script(file) if file else b"", os.environ, _user(), int(time.time()))
    try:
        found.read()
    except UsageError:
        raise
    except GpuwasteError as error:
        raise type(error)(f"{file}: {error}") from error
    return found


def _sources(config: Config, model: Path | None, user: str, own: OwnProgram | None) -> Sources:
    conf, timeout_s = config.common.slurm_conf, config.common.slurm_timeout_s

    def probe(words: Sequence[str]) -> DryRun:
        return dry_run(words, timeout_s, conf)

    def predict(requests: Sequence[JobRequest]) -> list[Predicted]:
        found = asking.answer(config, asking.PredictQuery(tuple(requests)), model, None)
        return [Predicted(tuple(one.targets), tuple(one.changes)) for one in found]

    def queued(name: str) -> QueuedJobs:
        return queued_jobs(_client(config), user, name, LONGEST_S)

    return Sources(
        probe,
        predict,
        lambda requests: _expected(config, requests),
        queued,
        lambda asked: _programs(own, asked),
        lambda: _sizes(config),
    )


def _sizes(config: Config) -> list[RightSize]:
    """Query the hub for the findings about the size of the user's requests. Raises as `_expected` does."""
    return convert(hub_client(config).right_sizes(), RightSizesDocument, "the hub's right sizes").sizes


def _expected(config: Config, requests: Sequence[JobRequest]) -> list[Expected | None]:
    """Query the hub for starts and ends. Raises NoDataError, AuthError, WireError, ParseError."""
    sent = [asking.sent(replace(request, script=None)) for request in requests]
    answer = convert(hub_client(config, COMPILING_S).expect(sent), ExpectAnswer, "the hub's plan")
    if len(answer.expected) != len(requests):
        raise WireError(
            f"the hub answered {len(answer.expected)} of {len(requests)} requests: does it run another version?"
        )
    return [None if one is None else (one.start, one.end) for one in answer.expected]


def _taken(found: PlanDocument, number: int) -> PlanDocument:
    one = next((one for one in found.candidates if one.number == number), None)
    if one is None:
        raise UsageError(f"--take {number}: candidates are 1 to {len(found.candidates)}")
    if one.status not in {"valid", "unchecked"}:
        raise UsageError(
            f"--take {number}: {one.title} cannot be submitted: {one.reasons[0] if one.reasons else one.text}"
        )
    return structs.replace(found, chosen=number, meets_deadline=None)


def _client(config: Config) -> CommandClient:
    return CommandClient(config.common.slurm_conf, config.common.slurm_timeout_s)


def _user() -> str:
    if name := user_name(os.getuid()):
        return name
    raise UsageError(f"uid {os.getuid()} has no name on this host: run it on a login node")


def watch(config: Config, options: argparse.Namespace) -> int:
    """Follow a job. Raises NoDataError for one that slurmctld does not know."""
    job: str = options.watch
    require_job(job)
    client = CommandClient(config.common.slurm_conf, config.common.slurm_timeout_s)
    follow(job, lambda: _sight(config, client, job), as_json=options.json)
    return 0


def follow(job: str, look: Look, *, as_json: bool, pause: Callable[[float], None] = time.sleep) -> None:
    """Print the first estimate, then each that changed, until the job no longer waits."""
    seen = look()
    _tell(job, seen, "" if seen.state not in QUEUED else reason_words(seen.reason), as_json=as_json)
    while seen.state in QUEUED:
        pause(EVERY_S)
        new = look()
        words = "" if new.state not in QUEUED else moved(seen, new)
        if words or new.state not in QUEUED:
            _tell(job, new, words, as_json=as_json)
            seen = new


def _tell(job: str, sight: StartForecast, words: str, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps({"document": "plan_watch", "job": job, "why": words, **to_builtins(sight)}) + "\n")
    else:
        sys.stdout.write(f"{clock(sight.at, sight.at, None)} {_line(job, sight, words)}\n")
    sys.stdout.flush()


def _line(job: str, sight: StartForecast, words: str) -> str:
    if sight.state not in QUEUED:
        return f"job {job} is {harmless(sight.state)}"
    start = "no expected start" if sight.start is None else f"expected start {clock(sight.start, sight.at, None)}"
    if sight.interval is not None:
        first, last = (clock(at, sight.at, None) for at in (sight.interval.p10, sight.interval.p90))
        start += f" (80 %: {first} to {last})"
    ahead = "" if sight.before is None else f", {sight.before} jobs ahead of it"
    return f"job {job}: {start}{ahead}; {harmless(words)}"


def _sight(config: Config, client: CommandClient, job: str) -> StartForecast:
    """Query the hub; where it has no answer squeue --start, which has no interval."""
    now = int(time.time())
    try:
        found = convert(hub_client(config, COMPILING_S).expect_job(job), ExpectAnswer, "the hub's plan")
    except GpuwasteError:
        return _of_squeue(client, job, now)
    one = found.expected[0] if found.expected else None
    start = one.start if one else None
    return StartForecast(now, found.state, found.reason, start.p50 if start else None, start, found.place)


def _of_squeue(client: CommandClient, job: str, now: int) -> StartForecast:
    try:
        text = client.text("squeue", "--noheader", "--states=all", f"--jobs={job}", f"--format={_FORMAT}")
    except GpuwasteError as error:
        if "invalid job id" in str(error).lower():
            raise NoDataError(f"job {job}: not known to slurmctld") from None
        raise
    line = next(iter(text.splitlines()), "")
    if not line:
        raise NoDataError(f"job {job}: not known to slurmctld")
    row = line.split("|")
    if len(row) != _COLUMNS:
        raise ParseError(f"squeue: {len(row)} columns where {_COLUMNS} were requested: {line[:80]!r}")
    start, reason, state = row
    return StartForecast(now, state, reason, int(start) if start.isascii() and start.isdigit() else None)
