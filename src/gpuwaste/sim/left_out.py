"""What a simulation did without: rows that could not be read, jobs that were left out, with the first of each."""

from collections.abc import Iterator

from gpuwaste.sim.document import SimulationDocument


def left_out_words(document: SimulationDocument) -> Iterator[str]:
    """Yield a clause for each reason, without a full stop."""
    yield from document.unread
    for reason, count in document.left_out.items():
        ids = document.left_out_jobs.get(reason, [])
        more = ", ..." if count > len(ids) else ""
        which = f" (job {', '.join(map(str, ids))}{more})" if ids else ""
        yield f"{count} {'job is left out: it' if count == 1 else 'jobs are left out: each'} {reason}{which}"
