"""Finding: a named cause of waste with its evidence, which runs can have one, and the options to change."""

import re
import shlex
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from gpuwaste.core.errors import ParseError
from gpuwaste.ledger.ledger import DeviceLedger, JobLedger, LedgerSettings
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.slurm.submit.gpu_items import GPU_OPTIONS, GpuRequest, gpu_item, tasks_of, typed_count

DIRECTIVE: Final = "#SBATCH "
"""The beginning of a line for the batch script; any other line is a command for a terminal."""
_NODE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}", re.ASCII)
_TYPE: Final = re.compile(r"[A-Za-z0-9_.\-]{1,32}")  # needs no shell quoting: users copy the line
_CPUS: Final = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)
MAX_LINE: Final = 4096  # characters of a submit line that are read: options are first, and shlex is slow
_LONG: Final = {"-n": "--ntasks", "-c": "--cpus-per-task"}
_LETTERS: Final = frozenset({"-G", *_LONG})
_READ: Final = frozenset({*GPU_OPTIONS, *_LONG.values()})
# Options of sbatch, salloc and srun without a value: the next argument starts the script.
_FLAGS: Final = frozenset(
    {
        "--contiguous",
        "--exclusive",
        "--hold",
        "--no-kill",
        "--no-requeue",
        "--overcommit",
        "--overlap",
        "--oversubscribe",
        "--parsable",
        "--pty",
        "--quiet",
        "--reboot",
        "--requeue",
        "--spread-job",
        "--test-only",
        "--use-min-nodes",
        "--verbose",
        "--wait",
        "-H",
        "-O",
        "-Q",
        "-W",
        "-k",
        "-s",
        "-v",
    }
)


@dataclass(frozen=True, slots=True)
class Fix:
    """One change of a job: an instruction ("request one GPU"), and lines to copy that belong together.

    A line works unchanged, in the script of any job (`#SBATCH ...`) or at a terminal: it has no placeholders. What
    depends on the program is in the text.
    """

    text: str
    lines: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the change as a JSON object."""
        return {"text": self.text, "lines": list(self.lines)}


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with one job, or with several together, and what to change.

    `kind` is the name of the finding's file (gpus_untouched, one_gpu_of_many, ...); `evidence` holds the figures that
    the text is made of; of `fixes`, which exclude each other, one is to be chosen. FindingRow is
    a finding in a document, where the runs have printed ids.
    """

    kind: str
    title: str
    runs: tuple[RunKey, ...]
    evidence: dict[str, Any]
    fixes: tuple[Fix, ...]
    wasted_gpu_s: float
    provisional: bool = False  # the job still runs: the verdict may change

    def to_json(self) -> dict[str, Any]:
        """Return the finding as a JSON object; `fix` has the lines of the first of `fixes`, for older clients."""
        return {
            "kind": self.kind,
            "title": self.title,
            "runs": [{"cluster": r.cluster, "jobid": r.job_id, "start": r.start} for r in self.runs],
            "evidence": self.evidence,
            "fix": list(self.fixes[0].lines) if self.fixes else [],
            "fixes": [fix.to_json() for fix in self.fixes],
            "wasted_gpu_s": self.wasted_gpu_s,
            "provisional": self.provisional,
        }


def judgeable(jobs: Iterable[JobLedger], settings: LedgerSettings, min_ran_s: float) -> Iterator[JobLedger]:
    """Yield the runs that held GPUs, ran long enough and have enough known time; unknown time gives no finding."""
    for ledger in jobs:
        if ledger.devices and ledger.ran_ms >= min_ran_s * 1000 and ledger.due_coverage >= settings.min_coverage:
            yield ledger


def memory_resident(device: DeviceLedger, settings: LedgerSettings) -> bool:
    """Return whether a process holds so much of the GPU's memory that the job needs the GPU for it."""
    ratio = device.use.memory_ratio
    return device.use.proc_seen and ratio is not None and ratio >= settings.memory_resident_ratio


def never_touched(device: DeviceLedger, settings: LedgerSettings) -> bool:
    """Return whether no process ever opened the GPU, with enough known time to be sure."""
    return device.untouched and device.due_coverage >= settings.min_coverage


def only_opened(device: DeviceLedger, settings: LedgerSettings) -> bool:
    """Return whether a process opened the GPU, computed nothing on it, and does not need it for its memory."""
    idle = device.use.proc_seen and not device.use.pct_ms and device.wasted_ms >= settings.finding_min_s * 1000
    return idle and not memory_resident(device, settings)


def needed(ledger: JobLedger, settings: LedgerSettings) -> list[DeviceLedger]:
    """Return the GPUs that the job is known to need: every finding of a run proposes to request these."""
    return [d for d in ledger.devices if not never_touched(d, settings) and not only_opened(d, settings)]


def ask_for(ledger: JobLedger, devices: Sequence[DeviceLedger]) -> Fix:
    """Return the request for these GPUs only (no device: no GPU), with the option that the job used."""
    asked = gpu_request(ledger.job)
    where = f" (change {asked.option} on the command line: it overrides the script)" if asked.on_command_line else ""
    if not devices:
        return Fix(f"request no GPU{where}", (asked.none(),))
    by_node: dict[str, int] = {}
    for device in devices:
        by_node[device.use.node] = by_node.get(device.use.node, 0) + 1
    line = asked.line(len(devices), max(by_node.values(), default=1))
    fewer = (f"#SBATCH --nodes={len(by_node)}",) if len(by_node) < (ledger.job.n_nodes or 1) else ()
    return Fix(f"request {plural(len(devices))} instead of {len(ledger.devices)}{where}", (line, *fewer))


def use_all(ledger: JobLedger) -> Fix:
    """Return the advice to start a process for each GPU; how depends on the program."""
    gpus = ledger.job.gpus or len(ledger.devices)
    nodes = max(1, ledger.job.n_nodes or 1)
    several = f"--nnodes={nodes} " if nodes > 1 else ""
    which = "the GPU" if gpus == 1 else f"all {gpus} GPUs"
    start = "" if gpus == 1 else f": start a process for each (torchrun {several}--nproc_per_node={-(-gpus // nodes)})"
    return Fix(f"use {which}{start}")


def processes(ledger: JobLedger, node: str) -> tuple[str, ...]:
    """Return the command that lists a running job's processes on one of its nodes; nothing for an unusual node name."""
    if not _NODE.fullmatch(node):
        return ()
    return (f"srun --jobid={ledger.job.job_id} --overlap -N1 -n1 -w {node} ps -u $USER -o pid,etime,time,args",)


def plural(count: int, noun: str = "GPU") -> str:
    """Return "1 GPU" or "3 GPUs"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def gpu_request(job: JobRecord) -> GpuRequest:
    """Return how the job requested GPUs: from its submit line, else as --gres with the type that it was given."""
    options = _options(job.submit_line[:MAX_LINE])
    given = dict(options)
    for option, value in options:
        for kind in _types(option, value) if option in GPU_OPTIONS else ():
            if not kind or _TYPE.fullmatch(kind):
                tasks = tasks_of(given.get("--ntasks"), given.get("--gpus-per-task"), job.gpus or 0)
                return GpuRequest(option, kind, tasks, on_command_line=True)
    return GpuRequest("--gres", job.gpu_type if _TYPE.fullmatch(job.gpu_type) else "")


def cpus_per_task(job: JobRecord) -> int | None:
    """Return the CPUs per task that the submit line requests; None: it has no such option."""
    value = dict(_options(job.submit_line[:MAX_LINE])).get("--cpus-per-task", "")
    return int(value) if _CPUS.fullmatch(value) else None


def _types(option: str, value: str) -> Iterator[str]:
    """Yield the type of each item of the option's list that requests GPUs, "" for any."""
    for part in value.split(","):
        with suppress(ParseError):
            found = gpu_item(part) if option == "--gres" else typed_count(part)
            if found is not None:
                yield found[0]


@lru_cache(maxsize=4096)  # the same line is submitted over and over
def _options(submit_line: str) -> list[tuple[str, str]]:
    """Return the options for GPUs, tasks and CPUs before the script; none for a line that no shell can parse."""
    try:
        words = deque(shlex.split(submit_line)[1:])
    except ValueError:
        return []
    found: list[tuple[str, str]] = []
    while words:
        word = words.popleft()
        if not word.startswith("-"):
            break
        name, equals, value = word.partition("=")
        if word[:2] in _LETTERS and len(word) > 2:  # noqa: PLR2004 -G4
            name, equals, value = word[:2], "=", word[2:].lstrip("=")
        elif not equals and name not in _FLAGS and (name.startswith("--") or len(name) == 2):  # noqa: PLR2004 -X
            value = words.popleft() if words and not words[0].startswith("-") else ""
        name = _LONG.get(name, name)
        if name in _READ:
            found.append((name, value))
    return found
