"""The parts of this package that run in the hub, in the order in which their threads start."""

from typing import Final

from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.gpu_assignments import GpuAssignments
from gpuwaste.jobs.importers.accounting_importer import Importer
from gpuwaste.jobs.importers.page_details import PageReader
from gpuwaste.jobs.machine.machine_history import MachineHistory

PARTS: Final = (
    ClusterFacts,
    Importer,
    GpuAssignments,
    PageReader,
    MachineHistory,
)
