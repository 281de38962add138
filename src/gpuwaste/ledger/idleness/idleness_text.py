"""Whether a job or a node is idle, as text for people."""

from collections.abc import Sequence
from typing import Final

from gpuwaste.core.units import say_duration
from gpuwaste.ledger.idleness.idleness_types import REASONS, IdlenessDocument, IdleRun
from gpuwaste.show.layout import Column, Look
from gpuwaste.show.terminal_cells import UNKNOWN, clock, local_time, short, uncut

_ROWS: Final = 50


def idleness_text(document: IdlenessDocument, look: Look) -> str:
    """Render the answer and its evidence."""
    lines = look.title(f"Idleness of {document.about} {uncut(document.name)}") if look.header else []
    lines += look.facts([("Answer", document.answer.upper()), *_figures(document, look)])
    lines += [line for reason in document.reasons for line in look.bullet(f"{reason}: {REASONS[reason]}")]
    if document.runs:
        lines += ["", *_table(document.runs, look)]
    return "\n".join(lines) + "\n"


def _figures(document: IdlenessDocument, look: Look) -> list[tuple[str, str]]:
    found = [("Idle for", f"{say_duration(document.for_s)} and more is yes")]
    if document.since is not None and document.as_of is not None:
        ago = say_duration(max(0, document.generated - document.as_of))
        found.append(("Idle from", local_time(document.since, look.zone)))
        found.append(("Idle to", f"{local_time(document.as_of, look.zone)}, {ago} ago; nothing is known after it"))
    if document.answer == "yes":
        found.append(("Valid to", local_time(document.valid_until, look.zone)))
    if document.gpus is not None:
        free = UNKNOWN if document.free_gpus is None else str(document.free_gpus)
        found.append(("GPUs", f"{document.gpus}, {free} of them held by no job"))
    return found


def _table(runs: Sequence[IdleRun], look: Look) -> list[str]:
    pairs = [(run, gpu) for run in runs for gpu in run.gpus]
    shown = pairs[:_ROWS]
    lines = look.fitted(
        [
            Column("JOBID", [uncut(run.printed_id) for run, _ in shown], left=True),
            Column("NODE", [uncut(gpu.node) for _, gpu in shown], left=True),
            Column("GPU", [uncut(gpu.gpu_uuid) or UNKNOWN for _, gpu in shown], left=True, rank=2),
            Column("IDLE FOR", [_length(gpu.since, gpu.as_of) for _, gpu in shown]),
            Column("AGE", [UNKNOWN if gpu.age_s is None else short(gpu.age_s) for _, gpu in shown], rank=1),
            Column("REASON", [",".join(gpu.reasons) for _, gpu in shown], left=True),
        ]
    )
    more = len(pairs) - len(shown)
    return [*lines, f"  ... and {more} more GPUs (--json)"] if more > 0 else lines


def _length(since: int | None, as_of: int | None) -> str:
    return UNKNOWN if since is None or as_of is None else clock(max(0, as_of - since))
