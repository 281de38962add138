"""What the findings share: which runs may be judged, and the changes that they propose."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from gpuwaste.ledger.finding import Fix
from gpuwaste.ledger.gpu_options import gpu_request
from gpuwaste.ledger.ledger import DeviceLedger, JobLedger
from gpuwaste.ledger.ledger_settings import LedgerSettings

_NODE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}", re.ASCII)


def judgeable(jobs: Iterable[JobLedger], settings: LedgerSettings, min_ran_s: float) -> Iterator[JobLedger]:
    """Yield the runs that held GPUs, ran long enough, and of which enough is known; nothing is drawn from unknown."""
    for ledger in jobs:
        if ledger.devices and ledger.ran_ms >= min_ran_s * 1000 and ledger.due_coverage >= settings.min_coverage:
            yield ledger


def memory_resident(device: DeviceLedger, settings: LedgerSettings) -> bool:
    """Tell whether a process keeps so much of the GPU's memory that the job needs the GPU for it."""
    ratio = device.use.memory_ratio
    return device.use.proc_seen and ratio is not None and ratio >= settings.memory_resident_ratio


def never_touched(device: DeviceLedger, settings: LedgerSettings) -> bool:
    """Tell whether no process ever opened the GPU, and enough is known of it to say so."""
    return device.untouched and device.due_coverage >= settings.min_coverage


def only_opened(device: DeviceLedger, settings: LedgerSettings) -> bool:
    """Tell whether a process opened the GPU, computed nothing there, and does not need it for its memory."""
    idle = device.use.proc_seen and not device.use.pct_ms and device.wasted_ms >= settings.finding_min_s * 1000
    return idle and not memory_resident(device, settings)


def needed(ledger: JobLedger, settings: LedgerSettings) -> list[DeviceLedger]:
    """Return the GPUs that the job needs as far as is known: every finding of a run proposes to ask for these."""
    return [d for d in ledger.devices if not never_touched(d, settings) and not only_opened(d, settings)]


def ask_for(ledger: JobLedger, devices: Sequence[DeviceLedger]) -> Fix:
    """Return the request for these GPUs only (for no device: for none), by the option that the job used."""
    asked = gpu_request(ledger.job)
    where = f" (change {asked.option} on the command line: it overrides the script)" if asked.on_command_line else ""
    if not devices:
        return Fix(f"ask for no GPU{where}", (asked.none(),))
    by_node: dict[str, int] = {}
    for device in devices:
        by_node[device.use.node] = by_node.get(device.use.node, 0) + 1
    line = asked.line(len(devices), max(by_node.values(), default=1))
    fewer = (f"#SBATCH --nodes={len(by_node)}",) if len(by_node) < (ledger.job.n_nodes or 1) else ()
    return Fix(f"ask for {plural(len(devices))} instead of {len(ledger.devices)}{where}", (line, *fewer))


def use_all(ledger: JobLedger) -> Fix:
    """Return that a process is started for each GPU: how depends on the program."""
    gpus = ledger.job.gpus or len(ledger.devices)
    nodes = max(1, ledger.job.n_nodes or 1)
    several = f"--nnodes={nodes} " if nodes > 1 else ""
    which = "the GPU" if gpus == 1 else f"all {gpus} GPUs"
    start = "" if gpus == 1 else f": start a process for each (torchrun {several}--nproc_per_node={-(-gpus // nodes)})"
    return Fix(f"use {which}{start}")


def processes(ledger: JobLedger, node: str) -> tuple[str, ...]:
    """Return the command that lists the processes of a running job on one of its nodes; none for a strange name."""
    if not _NODE.fullmatch(node):
        return ()
    return (f"srun --jobid={ledger.job.job_id} --overlap -N1 -n1 -w {node} ps -u $USER -o pid,etime,time,args",)


def plural(count: int, noun: str = "GPU") -> str:
    """Return "1 GPU" or "3 GPUs"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
