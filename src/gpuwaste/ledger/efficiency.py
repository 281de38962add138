"""What a run did with its CPUs, as documents carry it."""

from gpuwaste.ledger.ledger import JobLedger


def cpu_efficiency(ledger: JobLedger) -> float | None:
    """Return the CPU time used over the CPU time allocated, 0..1 and over; None where it is not known."""
    return ratio(ledger.cpu_used_s, ledger.cpu_held_s)


def ratio(used_s: float | None, held_s: float | None) -> float | None:
    """Return used over held as documents carry it."""
    return round((used_s or 0.0) / held_s, 4) if held_s else None
