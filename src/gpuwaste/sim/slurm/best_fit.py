"""Which of the usable nodes a job gets, as select/cons_tres chooses them without a topology: compiled.

Source: `_eval_nodes` of Slurm 22.05's select/cons_tres/job_test.c. Usable nodes that follow one another in the cluster
and have the same Weight are a set. The set of the least Weight is taken first; of those, one that is large enough with
the fewest free CPUs, else the one with most. A job that needs one more node gets the one with the fewest free CPUs of
the set, else the first ones of it.
"""

import numpy as np

from gpuwaste.sim.compiled import compiled, in_place
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm.board import Ints


@in_place
def _last_of_set(nodes: Ints, free: Ints, first: int) -> int:
    last = first
    while (
        last + 1 < len(free)
        and free[last + 1] >= 0
        and nodes[last + 1, b.WEIGHT] == nodes[first, b.WEIGHT]
        and nodes[last + 1, b.PLACE] == nodes[last, b.PLACE] + 1
    ):
        last += 1
    return last


@in_place
def _best_set(nodes: Ints, free: Ints, wanted: int) -> tuple[int, int]:
    """Return the first and last node of the set that is taken next; there is one."""
    best_first = best_last = -1
    best_cpus, best_suffices, first = 0, False, 0
    while first < len(free):
        if free[first] < 0:
            first += 1
            continue
        last, cpus = _last_of_set(nodes, free, first), 0
        for node in range(first, last + 1):
            cpus += free[node]
        suffices = last - first + 1 >= wanted
        better = best_first < 0 or nodes[first, b.WEIGHT] < nodes[best_first, b.WEIGHT]
        if not better and nodes[first, b.WEIGHT] == nodes[best_first, b.WEIGHT]:
            tighter = not best_suffices or cpus < best_cpus
            better = tighter if suffices else cpus > best_cpus
        if better:
            best_first, best_last, best_cpus, best_suffices = first, last, cpus, suffices
        first = last + 1
    return best_first, best_last


@in_place
def best_fit(nodes: Ints, free: Ints, wanted: int, chosen: Ints) -> None:
    """Fill `chosen` with `wanted` nodes.

    `free` [m] has usable_cpus() of each usable node, at least `wanted` of them, and -1 for others; it is overwritten.
    """
    found = 0
    while found < wanted:
        first, last = _best_set(nodes, free, wanted - found)
        if wanted - found == 1:
            tightest = first
            for node in range(first + 1, last + 1):
                if free[node] < free[tightest]:
                    tightest = node
            first = last = tightest
        for node in range(first, min(last + 1, first + wanted - found)):
            chosen[found] = node
            found += 1
            free[node] = -1


@in_place
def usable_cpus(job: Ints, free: int) -> int:
    """Return how many free CPUs of a node count: a job with GPUs sees no more than it could use there.

    Source: `_select_cores`, which knows that for a job of one node or of one task a node.
    """
    alone = job[b.NODES] == 1 or job[b.CPUS] == 1
    return int(min(free, job[b.CPUS])) if job[b.GPUS] > 0 and alone else free


@compiled
def none_usable(nodes: Ints) -> Ints:
    """Return `free` of best_fit() without a usable node."""
    return np.full(len(nodes), -1, np.int64)
