"""What a loopback cluster looks like: its variant, its nodes and the order of their devices."""

import json
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from gpuwaste.testing.cluster_process import ClusterError

GPUS_PER_NODE = 4
NODE_NAMES = ("gpu1", "gpu2", "cpu1")
STATE = "cluster.json"


@dataclass(frozen=True)
class Variant:
    """How a cluster differs from the default one; `parse` reads the same from `tools/cluster --variant`."""

    constrain_devices: bool = False
    """cgroup v1 with ConstrainDevices=yes, proctrack/cgroup and task/cgroup."""
    cgroup_v2: bool = False
    """The same in the host's unified hierarchy: cgroup v2 with ConstrainDevices=yes."""
    private_data: bool = False
    """PrivateData=jobs in slurm.conf and slurmdbd.conf: a user's sacct shows his own jobs alone."""
    shards: int = 0
    """Shards per GPU (Gres=shard); 0 for none."""
    amd: int = 0
    """AMD GPUs (gres type mi300x) of each GPU node, beside its NVIDIA ones."""
    intel: int = 0
    """Intel GPUs (gres type max1550) of each GPU node, beside the others."""
    preempt: bool = False
    """A partition "urgent" over the GPU nodes whose jobs requeue those of "gpu"."""
    gres_order: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Device minors of a node in gres.conf order; a node not named gets 0,1,2,3 in order, or shuffled by `seed`."""
    seed: int | None = None
    """Draws every node's device order at random."""
    prolog: tuple[str, ...] | None = None
    """Scripts of the prolog on each node; None for the repository's plugins/prolog.d/*."""
    epilog: tuple[str, ...] | None = None
    """Scripts of the epilog on each node; None for the repository's plugins/epilog.d/*."""
    node_prefix: str = ""
    """Put before each node's name: two clusters with constrain_devices need different names."""
    job_submit: str = ""
    """JobSubmitPlugins, such as "gpuwaste" or "lua"; "" for none."""
    plugin_dir: str = ""
    """A folder with plugins of our own, before Slurm's."""
    backup: bool = False
    """A second slurmctld on an address and a host name of its own, which takes over when the first is gone."""
    job_acct_gather_s: int = 5
    """JobAcctGatherFrequency, seconds."""
    cred_expire_s: int = 10
    """Lifetime of a job credential, seconds: a requeued job waits that long before it starts again."""
    slurm_conf: str = ""
    """Lines added at the end of slurm.conf."""
    cluster: str = "gw"
    """ClusterName."""
    accounting: str = ""
    """The directory of a running cluster whose slurmdbd and munge key this one uses; "" for its own."""

    @property
    def constrained(self) -> bool:
        """Whether a job reaches its own devices alone."""
        return self.constrain_devices or self.cgroup_v2

    @classmethod
    def parse(cls, words: list[str]) -> Self:
        """Read options such as "private_data", "shards=4", "seed=7" or "gres_order=gpu1:3-1-0-2"."""
        kinds = {item.name: str(item.type) for item in fields(cls)}
        values: dict[str, Any] = {}
        for word in words:
            key, _, text = word.partition("=")
            key = key.replace("-", "_")
            if key not in kinds:
                raise ClusterError(f"unknown variant {word!r}; use one of: {', '.join(sorted(kinds))}")
            try:
                values[key] = _parse_value(kinds[key], text)
            except ValueError:
                raise ClusterError(f"variant {word!r}: {text!r} is no value for {key}") from None
        return cls(**values)


def _parse_value(kind: str, text: str) -> Any:
    if "bool" in kind:
        if text:
            raise ValueError(text)
        return True
    if "int" in kind and "Mapping" not in kind:
        return int(text)
    if "Mapping" in kind:
        pairs = (item.split(":") for item in text.split("/"))
        return {node: tuple(int(minor) for minor in order.split("-")) for node, order in pairs}
    return tuple(text.split(",")) if "tuple" in kind else text


@dataclass(frozen=True)
class Node:
    """One node of a cluster."""

    name: str
    address: str
    """Its own loopback address: NodeAddr in slurm.conf and the origin of its munge credentials."""
    port: int
    """slurmd's TCP port."""
    minors: tuple[int, ...]
    """Device minors in gres.conf order: position i of SLURM_JOB_GPUS and IDX is the device /dev/nvidia<minors[i]>."""
    directory: Path
    amd: tuple[int, ...] = ()
    """Simulated GPUs (numbers after those of `minors`) that are AMD's; their positions follow those of `minors`."""
    intel: tuple[int, ...] = ()
    """Those that are Intel's; numbers and positions follow those of `amd`, and so do render nodes."""

    @property
    def positions(self) -> tuple[int, ...]:
        """Numbers of its GPUs in gres.conf order."""
        return (*self.minors, *self.amd, *self.intel)

    @property
    def munge_socket(self) -> Path:
        """Socket of the munged whose credentials carry this node's address."""
        return self.directory.parent.parent / "munge" / self.name / "s"

    @property
    def run_dir(self) -> Path:
        """Stand-in for /run/gpuwaste: the agent's socket and health file."""
        return self.directory / "run"

    @property
    def jobs_dir(self) -> Path:
        """Stand-in for /run/gpuwaste-jobs: the files of prolog and epilog."""
        return self.directory / "jobs"

    @property
    def spool_dir(self) -> Path:
        """SlurmdSpoolDir: slurmstepd's sockets."""
        return self.directory / "spool"

    @property
    def state_dir(self) -> Path:
        """The agent's state directory on this node."""
        return self.directory / "state"


@dataclass(frozen=True)
class Layout:
    """Where a cluster lives and under which ids: all that its files and daemons are made from."""

    directory: Path
    cluster_id: str
    """Drawn once per directory; its processes carry it in their environment."""
    variant: Variant
    ports: tuple[int, ...]
    """slurmctld, slurmdbd, slurmrestd, then slurmd of each node."""

    @property
    def slurm_conf(self) -> Path:
        """The cluster's slurm.conf."""
        return self.directory / "etc" / "slurm.conf"

    @property
    def munge_socket(self) -> Path:
        """Socket of the cluster's own munged (the hub's), origin 127.0.0.1."""
        return self.directory / "munge" / "hub" / "s"

    @cached_property
    def accounting_port(self) -> int:
        """The port of its slurmdbd."""
        other = self.variant.accounting
        return Layout.load(Path(other))[0].accounting_port if other else self.ports[1]

    @property
    def mysql_socket(self) -> Path:
        """Socket of the cluster's MariaDB."""
        return self.directory / "mysql" / "s"

    @property
    def backup_address(self) -> str:
        """Address of the backup controller: the same port on a loopback address that no node of any cluster has."""
        return f"127.{self.ports[0] >> 8}.{self.ports[0] & 255}.200"

    @cached_property
    def nodes(self) -> dict[str, Node]:
        """The nodes gpu1, gpu2 and cpu1 by name."""
        draw = random.Random(self.variant.seed)  # noqa: S311 - a drawn order is a test's input, no secret
        return dict(self._node(index, name, draw) for index, name in enumerate(NODE_NAMES))

    def _node(self, index: int, name: str, draw: random.Random) -> tuple[str, Node]:
        full = self.variant.node_prefix + name
        minors = list(range(GPUS_PER_NODE if name.startswith("gpu") else 0))
        if self.variant.seed is not None:
            draw.shuffle(minors)
        order = self.variant.gres_order.get(full, self.variant.gres_order.get(name, tuple(minors)))
        # No other cluster has slurmctld's port meanwhile, so no other has these addresses of 127/8 either.
        address = f"127.{self.ports[0] >> 8}.{self.ports[0] & 255}.{index + 1}"
        first_intel = GPUS_PER_NODE + self.variant.amd
        amd = tuple(range(GPUS_PER_NODE, first_intel)) if name.startswith("gpu") else ()
        intel = tuple(range(first_intel, first_intel + self.variant.intel)) if name.startswith("gpu") else ()
        return full, Node(full, address, self.ports[3 + index], order, self.directory / "node" / full, amd, intel)

    def save(self, processes: Mapping[str, tuple[int, int]]) -> None:
        """Write the state file, from which another process can look after the cluster."""
        state = {**asdict(self), "directory": str(self.directory), "processes": processes}
        new = self.directory / f"{STATE}.new"
        new.write_text(json.dumps(state, indent=1), encoding="utf-8")
        new.replace(self.directory / STATE)

    @classmethod
    def load(cls, directory: Path) -> tuple[Self, dict[str, tuple[int, int]]]:
        """Read the state file: the layout, and (pid, start time in ticks) by daemon."""
        try:
            state = json.loads((directory / STATE).read_text(encoding="utf-8"))
            options = state["variant"]
            options["gres_order"] = {node: tuple(order) for node, order in options["gres_order"].items()}
            scripts = {key: tuple(options[key]) for key in ("prolog", "epilog") if options[key] is not None}
            variant = Variant(**{**options, **scripts})
            processes = {name: (pid, start) for name, (pid, start) in state["processes"].items()}
            return cls(directory, state["cluster_id"], variant, tuple(state["ports"])), processes
        except FileNotFoundError:
            raise ClusterError(f"no cluster in {directory}; start one with: tools/cluster up --dir DIR") from None
        except (ValueError, KeyError, TypeError) as error:
            raise ClusterError(f"{directory / STATE} is damaged ({error}); remove the directory") from error
