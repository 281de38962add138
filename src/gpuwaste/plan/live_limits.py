"""Which limits apply to a job of a live cluster: QOS, associations, partitions, throttles of arrays.

Limits are those that the simulator knows (sim/assoc_limits.py), and are counted in the same way. GrpWall is left out:
its usage is not known here.
"""

from typing import TYPE_CHECKING

import numpy as np

from gpuwaste.plan.start_time.scheduler_queue import NOBODY, QueueLimits
from gpuwaste.sim.accounts import AccountTable, accounts_of
from gpuwaste.sim.assoc_limits import (
    BILLING,
    GRP_WALL,
    LimitTable,
    limit_table,
    no_limits,
    qos_order,
    tres_names,
    tres_row,
)
from gpuwaste.sim.fair_tree import billing
from gpuwaste.sim.multifactor import priority_settings
from gpuwaste.slurm.site.cluster_model import ClusterModel, Partition
from gpuwaste.slurm.site.limit_order import default_qos
from gpuwaste.slurm.submit.job_request import JobRequest, request_amounts

if TYPE_CHECKING:
    from collections.abc import Mapping

Owner = tuple[int, int, int, int, int]


class LiveLimits:
    """Numbers owners of jobs as they appear; without a model of the site nobody is limited.

    Raises ConfigError for impossible settings and accounts.
    """

    def __init__(self, model: ClusterModel | None) -> None:
        self._model = model
        self._users: dict[str, int] = {}
        self._throttles: dict[int, int] = {}
        self._most: list[int] = []
        self._owners: dict[tuple[str, str, str, str], tuple[int, int, int]] = {}
        self._rows: dict[tuple[object, ...], tuple[float, ...]] = {}
        self._partitions: Mapping[str, Partition] = {}
        self._table: LimitTable = no_limits()
        self._names: tuple[str, ...] = ()
        if model is None:
            return
        settings = priority_settings(model.settings)
        self._partitions = {one.name: one for one in model.partitions}
        self._accounts: AccountTable = accounts_of(model.associations)
        self._qos = {one.name: place for place, one in enumerate(model.qos)}
        self._largest = "MAX_TRES" in settings.flags
        names = tres_names(model)
        table = limit_table(model, self._accounts, names, safe=settings.safe, hold=settings.limits)
        for counts in (table.qos_counts, table.assoc_counts, table.above_counts):
            counts[:, GRP_WALL] = np.inf
        if table.any_limit:
            self._table, self._names = table, names

    @property
    def width(self) -> int:
        """The number of TRES that limits count."""
        return len(self._names)

    def queue_limits(self) -> QueueLimits:
        """Return the limits with the throttles of all arrays numbered so far."""
        return QueueLimits(self._table, np.array(self._most, np.int64))

    def closed(self, request: JobRequest, partition: str) -> bool:
        """Return whether a known partition starts no such job: it is down, or allows less time or fewer nodes."""
        known = self._partitions.get(partition)
        if known is None:
            return False
        limit, most = request.time_limit_s, known.max_nodes
        too_long = known.max_time_s is not None and limit is not None and limit > known.max_time_s
        return not known.up or too_long or (most is not None and (request.nodes or 1) > most)

    def throttle(self, array: int, most: int) -> int:
        """Return the number of an array's throttle."""
        if array not in self._throttles:
            self._throttles[array] = len(self._most)
            self._most.append(most)
        return self._throttles[array]

    def owner(self, request: JobRequest, partition: str, array: int | None = None) -> Owner:
        """Return the owners whose limits apply to a request; the first partition that it names counts."""
        throttle = self._throttles.get(array, -1) if array is not None else -1
        if not self.width:
            return (*NOBODY[:4], throttle)
        name = partition.split(",", 1)[0]
        key = (request.user, request.account, request.qos, name)
        if key not in self._owners:
            self._owners[key] = self._found(*key)
        user = self._users.setdefault(request.user, len(self._users))
        return (*self._owners[key], user, throttle)

    def tres(self, request: JobRequest, partition: str) -> tuple[float, ...]:
        """Return the amounts that the limits count for a request while it runs."""
        if not self.width:
            return ()
        part = self._partitions.get(partition.split(",", 1)[0])
        amounts = request_amounts(request)
        amounts.setdefault("node", 1)
        amounts.setdefault("cpu", 1)
        key = (*sorted(amounts.items()), "" if part is None else part.name)
        if key not in self._rows:
            row = tres_row(self._names, amounts)[None, :]
            weights = tres_row(self._names, part.billing_weights) if part and part.billing_weights else None
            row[0, BILLING] = billing(row, weights, max_tres=self._largest)[0]
            self._rows[key] = tuple(row[0].tolist())
        return self._rows[key]

    def _found(self, user: str, account: str, qos: str, partition: str) -> tuple[int, int, int]:
        assert self._model is not None  # noqa: S101 limits exist here
        known = self._accounts
        account = account or self._only_account(user)
        assoc = known.node(account, user, partition) if account else -1
        if not qos and assoc >= 0:
            own = known.associations[assoc]
            qos = default_qos(own.default_qos, own.qos)
        part = self._partitions.get(partition)
        places = self._qos.get(qos, -1), self._qos.get(part.qos, -1) if part else -1
        return (*qos_order(self._model, *places), assoc)

    def _only_account(self, user: str) -> str:
        """Return the account of a user who has one."""
        found = {one.account for one in self._accounts.associations if one.user == user}
        return found.pop() if len(found) == 1 else ""
