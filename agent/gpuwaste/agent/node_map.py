"""NodeMap: which job has which GPU of this node: the device map, Slurm's positions, and the thread that asks others."""

from pathlib import Path
from typing import Final

from gpuwaste.agent.agent_ports import AgentPorts
from gpuwaste.agent.facts.positions import PositionTable
from gpuwaste.agent.facts.prolog import PrologSource
from gpuwaste.agent.map_queries import Questions
from gpuwaste.core.config import Config
from gpuwaste.core.parts import Part, Parts

_JITTER_INTERVALS: Final = 3  # over which the nodes of one job spread their questions to slurmctld


class NodeMap(Part):
    """The map with what it is made of."""

    def __init__(self, parts: Parts) -> None:
        agent, ports = parts.get(Config).agent, parts.get(AgentPorts)
        site, slurm = ports.site, ports.slurm
        self.positions = PositionTable(lambda: slurm.device_list(site.node), site.slurm_files, site.slurmd_pid)
        self.positions.check()
        self.questions = Questions(
            site.node,
            ports.hub,
            slurm if agent.ask_slurmctld else None,
            ports.clock,
            jitter_s=agent.interval_s * _JITTER_INTERVALS,
            chores=(self.positions.check,),
        )
        self.worker = self.questions.worker
        self.devices = ports.edges.device_map(
            site.node,
            site.cluster,
            self.positions,
            self.questions,
            spool_dir=site.spool_dir,
            prolog=PrologSource(Path(agent.jobs_dir)),
        )
