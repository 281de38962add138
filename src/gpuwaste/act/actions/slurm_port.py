"""ActionSlurm: what actions ask of Slurm and have it do; CommandClient is one."""

from typing import Protocol

from gpuwaste.slurm.clients.scontrol import RunningJob
from gpuwaste.slurm.site.cluster_model import Node, Partition


class ActionSlurm(Protocol):
    """One cluster. Every method may block up to the timeout and raises SlurmError or ParseError."""

    def cluster_name(self) -> str:
        """Return ClusterName."""
        ...

    def job(self, job_id: int) -> list[RunningJob]:
        """Return the records of one job: several for an array's or a het job's first id, none where it is unknown."""
        ...

    def partitions(self) -> list[Partition]:
        """Return the partitions."""
        ...

    def nodes(self) -> list[Node]:
        """Return the nodes."""
        ...

    def text(self, *argv: str) -> str:
        """Run a command of Slurm and return what it prints; SlurmError where its exit code is not 0."""
        ...
