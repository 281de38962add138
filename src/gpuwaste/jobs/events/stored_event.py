"""StoredEvent: an event that carries its data, as the store keeps it and outlets take it (CONTRACTS.md, "Event")."""

from dataclasses import dataclass

from gpuwaste.slurm.run import RunKey


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """What happened to a run, a node, a GPU or a model.

    `data` is JSON of the kind's type. `subject` is what it is about, such as node/NAME; of a run it is the run's key:
    events of one subject stay in their order. The store sets `user` and `account`, the run's in accounting, and `seq`,
    the place in the stream.
    """

    id: str
    kind: str
    subject: str
    at_utc: int
    data: str
    run: RunKey | None = None
    user: str = ""
    account: str = ""
    seq: int = 0
