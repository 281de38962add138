"""The parts of this room that run in the hub, in the order in which their threads start."""

from typing import Final

from gpuwaste.ledger.appeals.appeal_service import Appeals
from gpuwaste.ledger.balance.keeper import BalanceKeeper
from gpuwaste.ledger.curves.curve_service import Curves
from gpuwaste.ledger.idleness.accounting_backlog import AccountingBacklog
from gpuwaste.ledger.idleness.agent_clocks import AgentClocks
from gpuwaste.ledger.idleness.idleness_reads import IdlenessReads
from gpuwaste.ledger.idleness.slurm_jobs import SlurmJobs
from gpuwaste.ledger.judging import Judging
from gpuwaste.ledger.now.now_reads import NowReads
from gpuwaste.ledger.open_runs import SharedRuns
from gpuwaste.ledger.reports.document_queries import DocumentQueries
from gpuwaste.ledger.right_size.keeper import RightSizes
from gpuwaste.ledger.rollup import Roller
from gpuwaste.ledger.source_comparison import SourceComparison
from gpuwaste.ledger.unaccounted import Unaccounted
from gpuwaste.ledger.waste_day import WasteDay

PARTS: Final = (
    WasteDay,
    Judging,
    Roller,
    RightSizes,
    Unaccounted,
    BalanceKeeper,
    SourceComparison,
    SharedRuns,
    DocumentQueries,
    Curves,
    NowReads,
    Appeals,
    AccountingBacklog,
    AgentClocks,
    SlurmJobs,
    IdlenessReads,
)
