"""What of this room runs in the hub, in the order in which its threads start."""

from typing import Final

from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.gpu_assignments import GpuAssignments
from gpuwaste.jobs.importers.accounting_importer import Importer
from gpuwaste.jobs.importers.page_details import PageReader

PARTS: Final = (
    ClusterFacts,
    Importer,
    GpuAssignments,
    PageReader,
)
