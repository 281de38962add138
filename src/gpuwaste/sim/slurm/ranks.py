"""Priorities of a play: those of priority/multifactor change with age and fair share, those of priority/basic do not.

Usage is charged as slurmctld does it: each PriorityCalcPeriod the running jobs, and at the end of a job the rest.
"""

import math
from typing import Final, NamedTuple

import numpy as np

from gpuwaste.jobs.history.job_table import Categories
from gpuwaste.sim.accounts import AccountTree
from gpuwaste.sim.assoc_limits import GPU, tres_names, tres_row
from gpuwaste.sim.compiled import compiled, in_place
from gpuwaste.sim.fair_tree import charge, decay, decay_per_second, fair_tree
from gpuwaste.sim.multifactor import Floats, Norms, PriorityJobs, Weighted, priority, priority_settings, weighted
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm import holds
from gpuwaste.sim.slurm.board import Board, Ints
from gpuwaste.sim.slurm.holds import amounts_of, billing_of, owners_of, usage_factors
from gpuwaste.slurm.site.cluster_model import ClusterModel

PER_SECOND: Final = 0  # of numbers: what decay leaves after a second
DAMPENING: Final = 1
LAST: Final = 2  # when usage was charged last
_DEPTH_FORCE = 5.0  # how soon what is above an association stops mattering; a constant of slurmctld


class Ranks(NamedTuple):
    """n jobs, A associations. `period` 0 means priority/basic: the order of submission."""

    parts: Weighted
    tree: AccountTree
    usage: Floats  # [A], decayed
    factor: Floats  # [A], fair share
    level: Floats  # [A], room
    assoc: Ints  # [n], -1 for none
    rate: Floats  # [n], billing TRES by the usage factor
    numbers: Floats
    period: int
    by_tree: bool
    oblivious: bool


def ranks_of(jobs: Ints, qos: Ints, users: Categories, accounts: Categories, model: ClusterModel) -> Ranks:
    """Return the priorities of jobs, rows of a board; users that the cluster does not know have one share each.

    Raises ConfigError for invalid settings.
    """
    settings, names = priority_settings(model.settings), tres_names(model)
    found, assoc = owners_of(jobs, users, accounts, model)
    amounts = amounts_of(jobs, names, model)
    rate = billing_of(jobs, amounts, names, model, settings) * usage_factors(model, qos)
    factors, levels = [part.priority_job_factor for part in model.partitions], [each.priority for each in model.qos]
    own = np.array([each.priority for each in found.associations], np.float64)
    available = np.array([_total(part.nodes, names, model) for part in model.partitions])
    asked = PriorityJobs(
        nodes=jobs[:, b.NODES],
        cpus=jobs[:, b.NODES] * jobs[:, b.CPUS],
        limit_s=jobs[:, b.LIMIT],
        amounts=amounts,
        available=available[jobs[:, b.PARTITION]],
        partition=np.array(factors, np.float64)[jobs[:, b.PARTITION]],
        qos=np.array([*levels, 0.0], np.float64)[qos],
        assoc=own[assoc],
        nice=np.zeros(len(jobs)),
    )
    norms = Norms(len(model.nodes), model.cpus, float(max(factors)), float(max(levels, default=0)), float(own.max()))
    return Ranks(
        parts=weighted(asked, norms, settings, tres_row(names, settings.weight_tres)),
        tree=found.tree,
        usage=found.usage.copy(),
        factor=np.zeros(len(own)),
        level=np.zeros(len(own)),
        assoc=assoc,
        rate=rate,
        numbers=np.array([decay_per_second(settings.half_life_s), settings.dampening, jobs[0, b.SUBMIT]], np.float64),
        period=settings.calc_period_s if settings.multifactor else 0,
        by_tree=settings.fair_tree,
        oblivious="DEPTH_OBLIVIOUS" in settings.flags,
    )


def _total(inside: tuple[str, ...], names: tuple[str, ...], model: ClusterModel) -> Floats:
    """Return all TRES of a partition's nodes."""
    members, total = set(inside), dict.fromkeys(names, 0)
    for node in model.nodes:
        if node.name in members:
            gpus = {f"{GPU}:{kind}": count for kind, count in node.gpus.items() if kind}
            amounts = {"cpu": node.cpus, "mem": node.memory_b, "node": 1, GPU: node.gpu_count, **gpus}
            for name, amount in amounts.items():
                total[name] += amount
    return tres_row(names, total)


@compiled
def set_fair_share(ranks: Ranks) -> None:
    """Rank the associations again."""
    if ranks.by_tree:
        fair_tree(ranks.tree, ranks.usage, False, ranks.factor, ranks.level)  # noqa: FBT003 compiled code takes no names
    else:
        classic(ranks.tree, ranks.usage, ranks.numbers[DAMPENING], ranks.oblivious, ranks.factor)


@in_place
def set_priority(board: Board, ranks: Ranks, number: int, now: int) -> None:
    """Compute the priority of a job."""
    if ranks.period > 0:
        assoc = ranks.assoc[number]
        share = ranks.factor[assoc] if assoc >= 0 else 0.0
        board.jobs[number, b.PRIORITY] = priority(ranks.parts, number, float(now - board.jobs[number, b.SUBMIT]), share)


@in_place
def charge_ends(board: Board, ranks: Ranks) -> None:
    """Charge jobs that have left their nodes since the last call."""
    for k in range(board.counters[b.LEFT]):
        job = board.jobs[board.left[k]]
        if ranks.period > 0:
            _charge(board, ranks, board.left[k], job, job[b.START] + job[b.RAN])
    board.counters[b.LEFT] = 0


@in_place
def _charge(board: Board, ranks: Ranks, number: int, job: Ints, until: int) -> None:
    if ranks.assoc[number] >= 0:
        since = max(job[b.START], int(ranks.numbers[LAST]))
        parent, per_second = ranks.tree.parent, ranks.numbers[PER_SECOND]
        charge(parent, ranks.usage, ranks.assoc[number], ranks.rate[number], per_second, since, until)
        holds.charge(board, number, per_second, since, until)


@compiled
def recompute(board: Board, ranks: Ranks, now: int) -> None:
    """Let usage decay, charge running jobs, and rank waiting ones again, as slurmctld does each PriorityCalcPeriod."""
    decay(ranks.usage, ranks.numbers[PER_SECOND], float(now) - ranks.numbers[LAST])
    decay(board.holds.use.qos_wall, ranks.numbers[PER_SECOND], float(now) - ranks.numbers[LAST])
    decay(board.holds.use.assoc_wall, ranks.numbers[PER_SECOND], float(now) - ranks.numbers[LAST])
    for k in range(board.counters[b.ENDS]):
        number = board.end_jobs[k]
        job = board.jobs[number]
        if job[b.STATE] == b.RUNNING and job[b.START] + job[b.RUN] == board.end_times[k] and job[b.START] < now:
            _charge(board, ranks, number, job, now)
    ranks.numbers[LAST] = now
    set_fair_share(ranks)
    queued = board.counters[b.QUEUED]
    keys = np.empty(queued, np.int64)
    waiting = np.sort(board.queue[:queued])
    for k in range(queued):
        set_priority(board, ranks, waiting[k], now)
        keys[k] = -((board.jobs[waiting[k], b.TIER] << 32) + board.jobs[waiting[k], b.PRIORITY])
    order = np.argsort(keys, kind="mergesort")
    for k in range(queued):
        board.queue[k] = waiting[order[k]]
    board.counters[b.CHANGES] += 1


@compiled
def classic(tree: AccountTree, usage: Floats, dampening: float, oblivious: bool, factor: Floats) -> None:
    """Write the fair share [n] of all associations, 0 to 1, from decayed usage [n].

    S is the product of the parts of shares from root down. U, directly below root, is the part of root's usage; further
    down it is mixed with what is above, own + (above - own) * shares / shares of the level, or by depth_oblivious().
    Those who share as the parent have the parent's.
    """
    n = len(usage)
    total = usage[tree.root]
    own, effective, shares = np.zeros(n), np.zeros(n), np.ones(n)
    if total > 0.0:
        own[:] = np.minimum(1.0, usage / total)
    effective[tree.root] = 1.0
    for k in tree.order[1:]:
        above = tree.above[k]
        used = above if tree.inherits[k] else k
        shares[k] = shares[above] if tree.inherits[k] else shares[above] * tree.share[k]
        if above == tree.root:
            effective[k] = own[k]
        elif tree.inherits[k]:
            effective[k] = effective[above]
        elif oblivious:
            effective[k] = depth_oblivious(tree, own, effective[above], shares, k)
        elif tree.level_shares[k] == 0.0:
            effective[k] = effective[above]
        else:
            effective[k] = own[k] + (effective[above] - own[k]) * (tree.raw[k] / tree.level_shares[k])
        factor[k] = 2.0 ** -((effective[used] / shares[used]) / dampening) if shares[used] > 0.0 else 0.0


@compiled
def depth_oblivious(tree: AccountTree, own: Floats, effective_above: float, shares: Floats, k: int) -> float:
    """Return the effective usage of DEPTH_OBLIVIOUS: R = R above * (r / r of siblings)^w, times the shares.

    r is usage by shares. w is 1 where both ratios are on one side of 1, else 1 / (1 + (5 ln R above)^2): the further
    what is above is from its shares, the less the difference between siblings counts (slurm.conf(5), PriorityFlags).
    """
    above = tree.above[k]
    if shares[k] == 0.0 or shares[above] == 0.0 or effective_above == 0.0 or own[k] == 0.0:
        return float(own[k])
    siblings = 0.0
    for place in range(tree.first[above], tree.first[above + 1]):
        if not tree.inherits[tree.below[place]]:
            siblings += own[tree.below[place]]
    ratio_above = effective_above / shares[above]
    ratio = (own[k] / shares[k]) / (siblings / shares[above])
    weight = 1.0
    if math.log(ratio_above) * math.log(ratio) < 0.0:
        weight = 1.0 / (1.0 + (_DEPTH_FORCE * math.log(ratio_above)) ** 2)
    return float(ratio_above * ratio**weight * shares[k])
