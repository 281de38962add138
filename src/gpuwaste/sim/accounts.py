"""The tree of accounts and users as arrays, as fair share and limits walk it.

Nodes are the associations by their place in the cluster's model, which should list siblings in Slurm's order
(by `lft`): where accounts tie in Fair Tree, the first one ranks first.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.errors import ConfigError
from gpuwaste.slurm.site.cluster_model import Association

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
_ROOT = "root"


class AccountTree(NamedTuple):
    """n associations for compiled code; one of them is root, which is above all others.

    `parent` [n] is the association above, -1 for root. `above` [n] is the one whose usage a share is a part of: the
    nearest above that does not share as its parent does. `below` lists those of one `above` from `first[k]` to
    `first[k + 1]`, users before accounts. `share` [n] is the part of its level, 0 to 1, `raw` the shares as set.
    `order` [n] has each association after the one above it. `users`: how many of them are users.
    """

    parent: Ints
    above: Ints
    first: Ints
    below: Ints
    order: Ints
    share: Floats
    raw: Floats
    level_shares: Floats
    is_user: Bools
    inherits: Bools
    users: int
    root: int


@dataclass(frozen=True, slots=True)
class AccountTable:
    """Associations in the order of the tree's nodes, and the node of each (account, user, partition)."""

    associations: tuple[Association, ...]
    tree: AccountTree
    index: dict[tuple[str, str, str], int]

    def node(self, account: str, user: str, partition: str = "") -> int:
        """Return the association of a job: of the partition where there is one, else of all; -1 for none."""
        found = self.index.get((account, user, partition), -1)
        return found if found >= 0 else self.index.get((account, user, ""), -1)

    @property
    def usage(self) -> Floats:
        """Decayed usage at the beginning [n], billing TRES seconds."""
        return np.array([each.usage for each in self.associations], dtype=np.float64)


def completed(associations: Iterable[Association], pairs: Iterable[tuple[str, str]]) -> tuple[Association, ...]:
    """Add what a trace names and a cluster does not know: (account, user), one share each, accounts below root."""
    known = list(associations)
    accounts = {each.account for each in known if not each.user} | {_ROOT}
    users = {(each.account, each.user) for each in known}
    for account, user in pairs:
        name = account or _ROOT
        if name not in accounts:
            accounts.add(name)
            known.append(Association(account=name))
        if (name, user) not in users:
            users.add((name, user))
            known.append(Association(account=name, user=user))
    return tuple(known)


def accounts_of(associations: Sequence[Association]) -> AccountTable:
    """Arrange associations as a tree; root is added where it is absent. Raises ConfigError, naming the association."""
    rows = list(associations)
    if not any(each.account == _ROOT and not each.user for each in rows):
        rows.append(Association(account=_ROOT, parent="", usage=sum(each.usage for each in rows if each.user)))
    index: dict[tuple[str, str, str], int] = {}
    for place, each in enumerate(rows):
        key = (each.account, each.user, each.partition)
        if key in index:
            raise ConfigError(f"{_named(each)}: defined twice; remove one")
        if each.shares is not None and each.shares < 0:
            raise ConfigError(f"{_named(each)}: {each.shares} shares; expected 0 or more, or parent")
        index[key] = place
    parent = np.array([_parent(index, each) for each in rows], dtype=np.int64)
    root = index[_ROOT, "", ""]
    order = _order(rows, parent, root)
    return AccountTable(tuple(rows), _tree(rows, parent, order, root), index)


def _parent(index: dict[tuple[str, str, str], int], each: Association) -> int:
    """Return the place of the association above, -1 for root."""
    if each.account == _ROOT and not each.user:
        return -1
    name = each.account if each.user else each.parent or _ROOT
    found = index.get((name, "", ""))
    if found is None:
        raise ConfigError(f"{_named(each)}: account {name[:40]!r} is not defined; add an association for the account")
    return found


def _order(rows: Sequence[Association], parent: Ints, root: int) -> Ints:
    """Return places, each after the one above it."""
    children: list[list[int]] = [[] for _ in rows]
    for place, above in enumerate(parent):
        if above >= 0:
            children[above].append(place)
    order = [root]
    for place in order:
        order.extend(children[place])
    if len(order) < len(rows):
        lost = min(set(range(len(rows))) - set(order))
        raise ConfigError(f"{_named(rows[lost])}: parent accounts form a cycle; correct one parent")
    return np.array(order, dtype=np.int64)


def _tree(rows: Sequence[Association], parent: Ints, order: Ints, root: int) -> AccountTree:
    n = len(rows)
    inherits = np.array([each.shares is None for each in rows], dtype=np.bool_)
    inherits[root] = False
    raw = np.array([each.shares or 0 for each in rows], dtype=np.float64)
    is_user = np.array([bool(each.user) for each in rows], dtype=np.bool_)
    above = np.full(n, -1, dtype=np.int64)
    for place in order[1:]:
        up = parent[place]
        above[place] = above[up] if inherits[up] else up
    below = np.lexsort((np.arange(n), ~is_user, above))[1:]  # root, whose `above` is -1, comes first
    first = np.searchsorted(above[below], np.arange(n + 1))
    level_shares = np.zeros(n)
    sums = np.bincount(above[below], weights=raw[below], minlength=n)
    level_shares[below] = sums[above[below]]
    share = np.divide(raw, level_shares, out=np.zeros(n), where=level_shares > 0)
    return AccountTree(
        parent, above, first.astype(np.int64), below.astype(np.int64), order, share, raw, level_shares, is_user,
        inherits, int(is_user.sum()), root,
    )  # fmt: skip


def _named(each: Association) -> str:
    part = f" in partition {each.partition[:40]!r}" if each.partition else ""
    return f"association {each.account[:40]!r}" + (f" of user {each.user[:40]!r}" if each.user else "") + part
