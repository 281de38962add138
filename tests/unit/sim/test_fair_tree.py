"""Fair Tree and classic fair share against their plain definitions, exact in slurmctld's 64 bits, and their traps."""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from gpuwaste.core.errors import ConfigError
from gpuwaste.sim.accounts import AccountTable, accounts_of, completed
from gpuwaste.sim.fair_tree import fair_tree, quotient
from gpuwaste.sim.slurm.ranks import classic
from gpuwaste.slurm.site.cluster_model import Association

pytestmark = pytest.mark.long

Level = Fraction | float


def in_64_bits(value: Fraction) -> Fraction:
    """Round to 64 bits of mantissa, ties to even, as an x86 long double does."""
    if value == 0:
        return value
    exponent = math.frexp(value.numerator / value.denominator)[1]
    for power in (exponent - 1, exponent, exponent + 1):
        if Fraction(2) ** (power - 1) <= value < Fraction(2) ** power:
            unit = Fraction(2) ** (power - 64)
            return round(value / unit) * unit
    raise AssertionError(value)


class Plain:
    """Fair share by its definition: recursive, in exact fractions, over lists of associations."""

    def __init__(self, rows: Sequence[Association], *, oblivious: bool = False) -> None:
        self.rows = list(rows)
        self.oblivious = oblivious
        self.names = {each.account: k for k, each in enumerate(self.rows) if not each.user}
        self.users = [k for k, each in enumerate(self.rows) if each.user]
        self.root = self.names["root"]
        self.above_of = cache(self.above)
        self.usage_of = cache(self.usage)

    def parent(self, k: int) -> int:
        each = self.rows[k]
        return self.names[each.account if each.user else each.parent]

    def above(self, k: int) -> int:
        up = self.parent(k)
        while self.rows[up].shares is None and up != self.root:
            up = self.parent(up)
        return up

    def usage(self, k: int) -> float:
        each = self.rows[k]
        below = sum(self.usage_of(c) for c in range(len(self.rows)) if c not in {k, self.root} and self.parent(c) == k)
        return each.usage + below

    def below(self, k: int) -> list[int]:
        return [c for c in range(len(self.rows)) if c != self.root and self.above_of(c) == k]

    def share(self, k: int) -> float:
        level = sum(self.rows[c].shares or 0 for c in self.below(self.above_of(k)))
        return (self.rows[k].shares or 0) / level if level else 0.0

    def level(self, k: int) -> Level:
        if self.rows[k].shares is None:
            return math.inf if self.rows[k].user else 2.0**32 - 2
        share, up = self.share(k), self.above_of(k)
        if share == 0.0:
            return 0.0
        if not self.usage_of(up) or not self.usage_of(k):
            return math.inf
        part = in_64_bits(Fraction(self.usage_of(k)) / Fraction(self.usage_of(up)))
        return in_64_bits(Fraction(share) / part)

    def ranked(self, *, merge: bool) -> dict[int, float]:
        """Return the fair share of each user."""
        found: dict[int, float] = {}
        rank = untied = len(self.users)

        def walk(siblings: list[int], carried: bool) -> None:
            nonlocal rank, untied
            line = sorted(siblings, key=lambda k: (-self.level(k), not self.rows[k].user))
            before: Level | None = None
            merged: set[int] = set()
            for place, k in enumerate(line):
                if k in merged:
                    continue
                level = self.level(k)
                tied = carried if place == 0 else level == before
                before = level
                if self.rows[k].user:
                    rank = rank if tied else untied
                    found[k] = rank / len(self.users)
                    untied -= 1
                    continue
                alike = [c for c in line[place:] if self.level(c) == level] if merge else [k]
                merged.update(alike)
                walk([c for account in alike for c in self.below(account)], tied)

        walk(self.below(self.root), carried=False)
        return found

    def classic(self, k: int) -> float:
        """Return 2^(-U/S) of a user."""
        who = self.above_of(k) if self.rows[k].shares is None else k
        shares = self.normal_shares(who)
        return 2.0 ** -(self.effective(who) / shares) if shares > 0 else 0.0

    def normal_shares(self, k: int) -> float:
        found = 1.0
        while k != self.root:
            if self.rows[k].shares is not None:
                found *= self.share(k)
            k = self.parent(k)
        return found

    def part(self, k: int) -> float:
        total = self.usage_of(self.root)
        return self.usage_of(k) / total if total else 0.0

    def by_depth(self, k: int, own: float, above: float) -> float:
        up = self.above_of(k)
        shares, shares_above = self.normal_shares(k), self.normal_shares(up)
        if not (shares and shares_above and above and own):
            return own
        siblings = sum(self.part(c) for c in self.below(up) if self.rows[c].shares is not None)
        over, beside = above / shares_above, own / shares / (siblings / shares_above)
        same_side = (over >= 1) == (beside >= 1) or over == 1 or beside == 1
        weight = 1.0 if same_side else 1 / (1 + 25 * math.log(over) ** 2)
        return float(over * beside**weight * shares)

    def effective(self, k: int) -> float:
        if k == self.root:
            return 1.0
        up, own = self.above_of(k), self.part(k)
        if up == self.root:
            return own
        above = self.effective(up)
        if self.oblivious:
            return self.by_depth(k, own, above)
        return own + (above - own) * self.share(k) if any(self.rows[c].shares for c in self.below(up)) else above


@st.composite
def trees(draw: st.DrawFn) -> list[Association]:
    """Draw accounts and users with few different shares and usages, so that many tie."""
    shares = st.sampled_from([None, 0, 1, 1, 2, 3, 10])
    usages = st.sampled_from([0.0, 0.0, 1.0, 2.0, 3.0, 9.0, 10.0, 1e9 + 7])
    rows = [Association("root", parent="")]
    for number in range(draw(st.integers(0, 7))):
        parent = draw(st.sampled_from([each.account for each in rows]))
        rows.append(Association(f"a{number}", parent=parent, shares=draw(shares)))
    accounts = [each.account for each in rows]
    for number in range(draw(st.integers(1, 12))):
        account = draw(st.sampled_from(accounts))
        rows.append(Association(account, f"u{number}", shares=draw(shares), usage=draw(usages)))
    return rows


def computed(rows: Sequence[Association], *, merge: bool = False) -> tuple[AccountTable, list[float], list[float]]:
    """Return fair share and LF of each association by the compiled function."""
    accounts = accounts_of(rows)
    n = len(accounts.associations)
    factor, level = np.zeros(n), np.zeros(n)
    fair_tree(accounts.tree, summed(accounts), merge, factor, level)
    return accounts, factor.tolist(), level.tolist()


def summed(accounts: AccountTable) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return usage with that of what is below."""
    usage = accounts.usage.copy()
    for k in accounts.tree.order[:0:-1]:
        usage[accounts.tree.parent[k]] += usage[k]
    return usage


@pytest.mark.parametrize("merge", [False, True])
@settings(max_examples=examples(300))
@given(rows=trees())
def test_each_user_ranks_as_by_the_definition(merge: bool, rows: list[Association]) -> None:
    """With both rules for tied accounts each user's fair share and each LF is the plain definition's."""
    plain = Plain(rows)
    _, factor, level = computed(rows, merge=merge)
    assert {k: factor[k] for k in plain.users} == plain.ranked(merge=merge)
    assert level[1:] == [float(plain.level(k)) for k in range(1, len(rows))]


@pytest.mark.parametrize("oblivious", [False, True])
@settings(max_examples=examples(300))
@given(rows=trees())
def test_classic_fair_share_is_the_definition_s(oblivious: bool, rows: list[Association]) -> None:
    """With NO_FAIR_TREE each user's fair share is 2 to the power of minus effective usage by normalised shares."""
    plain, accounts = Plain(rows, oblivious=oblivious), accounts_of(rows)
    factor = np.zeros(len(rows))
    classic(accounts.tree, summed(accounts), 1.0, oblivious, factor)
    assert [factor[k] for k in plain.users] == pytest.approx([plain.classic(k) for k in plain.users], rel=1e-9)


TIED = [
    Association("root", parent=""),
    Association("root", "root"),
    *(Association(name, shares=10) for name in "ab"),
    *(Association(name, f"{name}{k}", shares=2 - k) for name in "ab" for k in (1, 2)),
]


@pytest.mark.parametrize(
    ("merge", "expected"),
    [(False, {"a1": 1.0, "a2": 0.6, "b1": 0.6, "b2": 0.2}), (True, {"a1": 1.0, "a2": 0.4, "b1": 1.0, "b2": 0.4})],
)
def test_tied_accounts(merge: bool, expected: dict[str, float]) -> None:
    """Tied accounts are not merged by slurmctld, as sshare of 22.05.8 printed; the documentation's rule merges them."""
    accounts, factor, _ = computed(TIED, merge=merge)
    assert {name: factor[accounts.node(name[0], name)] for name in expected} == expected


def test_what_float64_would_tie() -> None:
    """One share of ten for a tenth of the usage and three for three tenths are told apart, as slurmctld does."""
    rows = [Association("root", parent="")]
    rows += [Association("root", name, shares=k, usage=float(k)) for name, k in (("one", 1), ("three", 3), ("six", 6))]
    accounts, factor, level = computed(rows)
    one, three = accounts.node("root", "one"), accounts.node("root", "three")
    assert level[one] == level[three] == 1.0
    assert factor[one] != factor[three]


@settings(max_examples=examples(500))
@given(a=st.integers(1, 2**53), b=st.integers(1, 2**53), power=st.integers(-40, 40))
def test_a_quotient_has_64_bits(a: int, b: int, power: int) -> None:
    """A quotient's two parts add up to the exact one rounded to 64 bits, also when it is divided by once more."""
    first = Fraction(a) * Fraction(2) ** power
    high, low = quotient(float(first), float(b), 0.0)
    once = in_64_bits(first / b)
    assert Fraction(high) + Fraction(low) == once
    high, low = quotient(1.0 / 3.0, high, low)
    assert Fraction(high) + Fraction(low) == in_64_bits(Fraction(1.0 / 3.0) / once)


def test_a_chain_and_a_crowd() -> None:
    """A thousand accounts one below the other and a thousand users in one are ranked: no recursion, no growth."""
    rows = [Association("root", parent="")]
    rows += [Association(f"a{k}", parent=f"a{k - 1}" if k else "root") for k in range(1000)]
    rows += [Association("a999", f"u{k}", usage=float(k + 1)) for k in range(1000)]
    _, factor, _ = computed(rows)
    assert factor[1001:] == [(1000 - k) / 1000 for k in range(1000)]


def test_an_unknown_root_and_a_trace_s_users_are_added() -> None:
    """Without a root one is added; users and accounts of a trace get a share each, known ones stay."""
    known = [Association("a", shares=5), Association("a", "u", usage=3.0)]
    accounts = accounts_of(completed(known, [("a", "u"), ("b", "v"), ("", "w"), ("b", "v")]))
    assert [(each.account, each.user) for each in accounts.associations] == [
        ("a", ""),
        ("a", "u"),
        ("b", ""),
        ("b", "v"),
        ("root", "w"),
        ("root", ""),
    ]
    assert accounts.usage.tolist() == [0, 3, 0, 0, 0, 3]
    assert accounts.node("a", "u", "gpu") == 1
    assert accounts.node("a", "nobody") == -1


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([Association("a"), Association("a")], "association 'a': defined twice"),
        ([Association("nowhere", "u")], "association 'nowhere' of user 'u': account 'nowhere' is not defined"),
        ([Association("a", parent="b"), Association("b", parent="a")], "association 'a': parent accounts form a cycle"),
        ([Association("a", "u", "root", "gpu", -1), Association("a")], "'u' in partition 'gpu': -1 shares"),
    ],
)
def test_a_tree_that_is_none_is_refused(rows: list[Association], words: str) -> None:
    """An account twice, one that is not there, a circle and negative shares are each one clear line."""
    with pytest.raises(ConfigError, match=words):
        accounts_of(rows)
