"""Classic fair share, of NO_FAIR_TREE or DEPTH_OBLIVIOUS in PriorityFlags: 2^(-U/S), by effective usage and shares."""

import math

import numpy as np
from numpy.typing import NDArray

from gpuwaste.sim.accounts import AccountTree
from gpuwaste.sim.compiled import compiled

Floats = NDArray[np.float64]
_DEPTH_FORCE = 5.0  # how soon what is above an association stops to matter; a constant of slurmctld


@compiled
def classic(tree: AccountTree, usage: Floats, dampening: float, oblivious: bool, factor: Floats) -> None:
    """Write the fair share [n] of all associations, 0 to 1, from decayed usage [n].

    S is the product of the parts of shares from root down. U, directly below root, is the part of root's usage; further
    down it is mixed with what is above, own + (above - own) * shares / shares of the level, or by depth_oblivious().
    Who shares as the parent has the parent's.
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
