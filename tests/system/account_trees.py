"""Random trees of accounts on a cluster: drawn, given to slurmdbd, with usage that slurmctld finds in its state."""

import random
import shutil
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from gpuwaste.slurm.site.cluster_model import Association
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_process import wait_until

_LINEAGE = (23, 11)  # the release in which a path of names took the place of lft
_STATE_VERSIONS = (38 << 8, 42 << 8)  # of Slurm 22.05; of 24.11, also read by 26.05
_DEEPEST = 4
_SHARES = (None, 0, 1, 1, 2, 3, 7, 10, 30)
_USAGES = (0, 0, 100, 100, 200, 300, 600, 900, 7_000_000)


@dataclass(frozen=True)
class Drawn:
    """A tree as it was asked for: (parent, name, shares) of accounts, (account, name, shares, usage) of users."""

    accounts: list[tuple[str, str, int | None]]
    users: list[tuple[str, str, int | None, int]]

    def lines(self) -> Iterator[str]:
        """Give the file that `sacctmgr load` reads."""
        yield "Cluster - 'gw':Fairshare=1:QOS='normal'"
        below: dict[str, list[str]] = {"root": []}
        for parent, name, shares in self.accounts:
            line = f"Account - '{name}':Description='t':Organization='t':Fairshare={_word(shares)}"
            below.setdefault(parent, []).append(line)
            below.setdefault(name, [])
        for account, name, shares, _ in self.users:
            below[account].append(f"User - '{name}':DefaultAccount='{account}':Fairshare={_word(shares)}")
        for parent, children in below.items():
            if children:
                yield f"Parent - '{parent}'"
                yield from children


def draw(chance: random.Random, prefix: str) -> Drawn:
    """Draw accounts up to four levels deep with few different shares and usages, so that many tie."""
    shares = chance.sample(_SHARES, chance.randint(2, len(_SHARES)))
    usages = chance.sample(_USAGES, chance.randint(1, len(_USAGES))) + [chance.randrange(10**9)] * chance.randint(0, 2)
    accounts: list[tuple[str, str, int | None]] = []
    levels = {"root": 0}
    for number in range(chance.randint(1, 9)):
        parent = chance.choice([name for name, level in levels.items() if level < _DEEPEST])
        name = f"{prefix}{chance.randrange(10)}{number}"
        levels[name] = levels[parent] + 1
        accounts.append((parent, name, chance.choice(shares)))
    users = [
        (chance.choice(list(levels)), f"{prefix}u{chance.randrange(10)}{number}", chance.choice(shares), usage)
        for number in range(chance.randint(1, 18))
        for usage in [chance.choice(usages)]
    ]
    return Drawn(accounts, users)


def plant(cluster: LoopbackCluster, tree: Drawn) -> list[Association]:
    """Give the tree to the cluster, restart slurmctld with its usage; returns the associations as Slurm has them."""
    cluster.processes["slurmctld"].stop()
    file = cluster.directory / "etc" / "tree.cfg"
    file.write_text("\n".join(tree.lines()) + "\n", encoding="utf-8")
    cluster.run(["sacctmgr", "-i", "load", f"file={file}"], timeout_s=120)
    return start_with_usage(cluster, {(account, user): used for account, user, _, used in tree.users})


def start_with_usage(cluster: LoopbackCluster, usage: Mapping[tuple[str, str], int]) -> list[Association]:
    """Start a slurmctld that was stopped with usage by account and user; returns the associations as Slurm has them."""
    known = [
        (number, replace(one, usage=usage.get((one.account, one.user), 0))) for number, one in associations(cluster)
    ]
    state = cluster.directory / "state" / "assoc_usage"
    version = _STATE_VERSIONS[cluster.release >= _LINEAGE]
    state.write_bytes(_state(version, [(number, int(one.usage)) for number, one in known if one.user]))
    shutil.chown(state, "slurm", "slurm")
    cluster.start_daemons(fresh=False)
    return [one for _, one in known]


def uproot(cluster: LoopbackCluster, tree: Drawn) -> None:
    """Take a tree out of accounting again."""
    if tree.users:
        cluster.run(["sacctmgr", "-i", "delete", "user", ",".join(name for _, name, _, _ in tree.users)], timeout_s=120)
    for _, name, _ in reversed(tree.accounts):
        cluster.run(["sacctmgr", "-i", "delete", "account", name], timeout_s=120)


def associations(cluster: LoopbackCluster) -> list[tuple[int, Association]]:
    """Read the associations with their numbers, in the order of siblings that slurmctld has."""
    by_name = cluster.release >= _LINEAGE
    fields = f"id,{'lineage' if by_name else 'lft'},account,user,parentname,fairshare"
    text = cluster.run(["sacctmgr", "-nP", "show", "assoc", f"format={fields}"], timeout_s=60).stdout
    lines = (line.split("|") for line in text.splitlines())
    rows = sorted(lines, key=lambda row: (0, row[1]) if by_name else (int(row[1]), ""))
    return [
        (int(number), Association(account, user, parent or "", shares=None if shares == "parent" else int(shares)))
        for number, _, account, user, parent, shares in rows
    ]


def shares(cluster: LoopbackCluster) -> dict[tuple[str, str], tuple[str, str]]:
    """Return LevelFS and FairShare that sshare prints, by account and user, once slurmctld has ranked."""
    found: dict[tuple[str, str], tuple[str, str]] = {}

    def ranked() -> bool:
        argv = ["sshare", "-a", "-l", "-n", "-P", "-o", "account,user,levelfs,fairshare"]
        rows = (line.split("|") for line in cluster.run(argv).stdout.splitlines())
        found.update({(account.strip(), user): (level, fair) for account, user, level, fair in rows})
        return any(fair and float(fair) > 0 for _, fair in found.values())

    wait_until(ranked, 30, "slurmctld to rank the users", lambda: str(found), poll_s=0.1)
    return found


def _word(shares: int | None) -> str:
    return "parent" if shares is None else str(shares)


def _state(version: int, usages: list[tuple[int, int]]) -> bytes:
    """Pack what slurmctld saves of usage (assoc_usage): number, raw usage as text, usage by TRES, wall."""
    packed = struct.pack(">HQ", version, 1)
    for number, used in usages:
        raw, tres = f"{used}.000000\0".encode(), b"1=0\0"
        packed += struct.pack(">II", number, len(raw)) + raw + struct.pack(">I", len(tres)) + tres
        packed += struct.pack(">I", 0)
    return packed
