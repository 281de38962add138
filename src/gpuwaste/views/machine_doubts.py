"""What is assumed of a machine wherever its nodes are counted, in sentences."""

from collections.abc import Iterator

from gpuwaste.jobs.machine.machine_reads import machine_known
from gpuwaste.ledger.balance.reads import FAR, states_from
from gpuwaste.store.database import Database


def machine_doubts(db: Database, cluster: str, start: int) -> Iterator[str]:
    """Yield what is assumed of a cluster's machine from `start`, UTC seconds, on. Raises StoreError."""
    known = machine_known(db, cluster)
    if known.inferred:
        yield (
            f"{cluster}: nodes are those on which jobs ran, with the most that jobs held there at a time. "
            "Give slurm.conf with --machine."
        )
    elif known.nodes is not None and known.nodes > start:
        yield f"{cluster}: before the hub first read the nodes they are assumed to be the same."
    if states_from(known) == FAR:
        yield f"{cluster}: states of nodes are not known: a node without a job counts as not known."
