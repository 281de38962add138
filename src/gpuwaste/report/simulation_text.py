"""Text of `gpuwaste simulate`: what each scheduler would have done, beside what the log says."""

from typing import Final

from gpuwaste.report.cells import UNKNOWN, fit, percent, short
from gpuwaste.report.layout import Look, bullet, facts
from gpuwaste.sim.document import NodesResult, SchedulerResult, SimulationDocument, Waits

_HEADERS: Final = ("SCHEDULER", "MEAN WAIT", "P50", "P95", "SLOWDOWN", "USED", "MAKESPAN", "LATER")
_WALLTIMES: Final = {"user": "the user's limit", "truth": "what each job ran", "recent": "the user's last two jobs"}
_LOGGED: Final = "(the log)"
_COUNTED: Final = "nodes, memory, GPU types, partitions and priorities are not modelled."
_ON_NODES: Final = "limits of QOS and accounts, features, licenses, dependencies, arrays and topology are not modelled."


def simulation_text(document: SimulationDocument, look: Look) -> str:
    """Render a simulation: what was simulated, a line for each scheduler, what was left out."""
    results = document.schedulers
    jobs = next(iter(results.values())).jobs
    lines = look.title(f"{fit(document.trace, 50)}: simulation")
    lines += facts(
        [
            ("jobs", f"{jobs}"),
            ("processors", f"{document.processors} ({document.processors_from})"),
            ("walltime", _WALLTIMES.get(document.walltime, document.walltime)),
        ]
    )
    rows = [_row(name, result) for name, result in results.items()]
    if document.logged is not None:
        rows.append(_row(_LOGGED, document.logged))
    lines += look.heading("What each scheduler would have done")
    lines += look.table(_HEADERS, rows, frozenset({0}))
    lines += look.heading("Notes")
    for name, result in results.items():
        lines += bullet(f"{name}: {result.title}.")
    for reason, count in document.left_out.items():
        lines += bullet(f"{count} {'job is left out: it' if count == 1 else 'jobs are left out: each'} {reason}.")
    first = next(iter(results))
    lines += bullet(f"SLOWDOWN is the mean bounded slowdown; LATER counts jobs that start later than under {first}.")
    counted = [name for name in results if name not in document.nodes]
    for name, found in document.nodes.items():
        lines += bullet(_on_nodes(name, found))
    if counted:
        lines += bullet(f"{', '.join(counted)}: the machine is a count of processors: {_COUNTED}")
    if document.nodes:
        lines += bullet(f"{', '.join(document.nodes)}: {_ON_NODES}")
    return "\n".join(lines) + "\n"


def _on_nodes(name: str, found: NodesResult) -> str:
    gpus = [f"GPUs {fit(kind, 20)} used {percent(share)}" for kind, share in found.gpu_utilization.items()]
    facts = {"requeued": found.requeued, "ended early": found.cut_short, "never started": found.never_started}
    return f"{name}: {', '.join([*gpus, *(f'jobs {what}: {count}' for what, count in facts.items())])}."


def _row(name: str, found: Waits) -> list[str]:
    later = found.later_than_first if isinstance(found, SchedulerResult) else None
    return [
        name,
        short(found.mean_wait_s),
        short(found.p50_wait_s),
        short(found.p95_wait_s),
        f"{found.mean_bounded_slowdown:.1f}",
        percent(found.utilization),
        short(found.makespan_s),
        UNKNOWN if later is None else percent(later),
    ]
