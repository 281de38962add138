"""A queue as the compiled loop takes it: columns of jobs that wait, that run, and how the scheduler passes."""

from typing import NamedTuple

from gpuwaste.plan.start_time.queue import Floats, Ints


class ProbeJobs(NamedTuple):
    """n jobs that wait: amounts [n, R] on each of `nodes` [n], pools as bits, limit and run, seconds to `begin` [n].

    `shape` [n] is the same number, from 0, for jobs of equal amounts, nodes, pools and reservation, `kind` for those of
    equal limit too, `alike` for those that count alike for the same QOS.
    """

    asks: Ints
    nodes: Ints
    pools: Ints
    limit: Ints
    run: Ints
    begin: Ints
    reservation: Ints
    owner: Ints
    tres: Floats
    shape: Ints
    kind: Ints
    alike: Ints


class Ran(NamedTuple):
    """r running jobs: seconds until the end [r], what is believed of it, owners [r, 5], TRES [r, T].

    `first` [r + 1] are the bounds of what each holds: `node` and `amounts` [h, R].
    """

    rest: Ints
    believed: Ints
    owner: Ints
    tres: Floats
    first: Ints
    node: Ints
    amounts: Ints


class BackfillRules(NamedTuple):
    """How the scheduler passes: jobs looked at, whether it backfills, the waiting job to stop at (-1: none)."""

    depth: int
    backfills: bool
    watched: int
