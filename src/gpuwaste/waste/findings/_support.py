"""What the findings share: which runs may be judged, and the lines that fix them."""

from collections.abc import Iterable, Iterator, Sequence

from gpuwaste.waste.gpu_options import gpu_request
from gpuwaste.waste.ledger import DeviceLedger, JobLedger
from gpuwaste.waste.ledger_settings import LedgerSettings


def judgeable(jobs: Iterable[JobLedger], settings: LedgerSettings, min_ran_s: float) -> Iterator[JobLedger]:
    """Yield the runs that held GPUs, ran long enough, and of which enough is known; nothing is drawn from unknown."""
    for ledger in jobs:
        if ledger.devices and ledger.ran_ms >= min_ran_s * 1000 and ledger.due_coverage >= settings.min_coverage:
            yield ledger


def memory_resident(device: DeviceLedger, settings: LedgerSettings) -> bool:
    """Tell whether a process keeps so much of the GPU's memory that the job needs the GPU for it."""
    ratio = device.use.memory_ratio
    return device.use.proc_seen and ratio is not None and ratio >= settings.memory_resident_ratio


def ask_for(ledger: JobLedger, devices: Sequence[DeviceLedger]) -> tuple[str, ...]:
    """Return the #SBATCH lines that ask for these GPUs only (none at all for no device), as the job asked."""
    if not devices:
        return (gpu_request(ledger.job).none(),)
    by_node: dict[str, int] = {}
    for device in devices:
        by_node[device.use.node] = by_node.get(device.use.node, 0) + 1
    nodes = ledger.job.n_nodes or 1
    line = gpu_request(ledger.job).line(len(devices), max(by_node.values(), default=1))
    fewer = (f"#SBATCH --nodes={len(by_node)}",) if 0 < len(by_node) < nodes else ()
    return (line, *fewer)


def spread_over(ledger: JobLedger) -> str:
    """Return torchrun's line that starts one process for each GPU of a node."""
    gpus = ledger.job.gpus or len(ledger.devices)
    nodes = max(1, ledger.job.n_nodes or 1)
    several = f"--nnodes={nodes} " if nodes > 1 else "--standalone "
    return f"torchrun {several}--nproc_per_node={-(-gpus // nodes)} train.py"


def plural(count: int, noun: str = "GPU") -> str:
    """Return "1 GPU" or "3 GPUs"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
