"""Policies from files: `load_policies` reads a directory; each error names file and key and what to do."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from gpuwaste.advice.policy.policy_file import GPUS, READERS, TABLES, TARGETS, Policy, TargetRule
from gpuwaste.advice.policy.policy_set import PolicySet
from gpuwaste.core import log_event
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.site_files import WatchedFiles, folder_files
from gpuwaste.core.text import PLAIN_NAME
from gpuwaste.core.typed_toml import nearest, parse_toml, read_data, read_table

BUILT_IN_NAME: Final = "default"
BUILT_IN: Final = f"""\
[policy]
name = "{BUILT_IN_NAME}"
mode = "shadow"

[targets.failure]
warn = "model"
reject = "model"

[targets.timeout]
warn = "model"

[targets.gpus]
warn = "model"
"""
MAX_FILE_B: Final = 1 << 20
_NOT_READ: Final = log_event.warning(
    "policies-not-read: cannot read policies, the loaded ones stay in use: {error}",
    "`gpuwaste policy check`, then fix the file.",
)
_GPUS_BASIS: Final = 2  # the ledger measures GPU use, so fewer jobs are enough


def load_policies(directory: Path) -> PolicySet:
    """Return the policies of a directory's `*.toml`, in the order of their names, the built-in one last.

    A directory that does not exist or is empty gives only the built-in one: shadow for all. Raises ConfigError.
    """
    return load_files(folder_files(directory, "policies", "policies_dir"))


def watched_policies(directory: Path | None) -> WatchedFiles[PolicySet]:
    """Return a directory's policies, read again where a file changes; bad files leave the previous policies in use.

    If they are bad at the start, or no directory is named, the built-in one is in use: shadow.
    """

    def read() -> PolicySet:
        return load_files(()) if directory is None else load_policies(directory)

    found = WatchedFiles(directory, read, load_files(()), lambda error: _NOT_READ.log(error=error))
    found.refresh()
    return found


def load_files(paths: Iterable[Path]) -> PolicySet:
    """Return the policies of these files in this order, the built-in one last. Raises ConfigError."""
    digest, policies, names = hashlib.sha256(), [], {BUILT_IN_NAME: "the built-in policy"}
    for path in paths:
        data = read_data(path, MAX_FILE_B, "a policy")
        policy = policy_from_toml(data, str(path))
        if policy.name in names:
            raise ConfigError(f"{path}: [policy] name {policy.name!r}: is used by {names[policy.name]}: rename one")
        names[policy.name] = str(path)
        digest.update(f"{path.name}\0{len(data)}\0".encode() + data)
        policies.append(policy)
    digest.update(BUILT_IN.encode())
    return PolicySet((*policies, built_in()), digest.hexdigest())


def built_in() -> Policy:
    """Return the policy for what no other policy judges: shadow."""
    return replace(policy_from_toml(BUILT_IN.encode(), BUILT_IN_NAME), file="")


def policy_from_toml(data: bytes, where: str) -> Policy:
    """Return one policy; `where` is its file, and names it if the file sets no name. Raises ConfigError."""
    parsed = parse_toml(data, where)
    known = {*TABLES, "targets"}
    for name in parsed:
        if name not in known:
            raise ConfigError(f"{where}: unknown table [{name}]{nearest(name, known)}")
    tables = {
        name: read_table(kind, parsed[name], f"{where}: [{name}]", READERS)
        for name, kind in TABLES.items()
        if name in parsed
    }
    targets = _targets(parsed.get("targets", {}), where)
    policy = Policy(**tables, targets=targets, file=where)
    name = policy.name or Path(where).name.removesuffix(".toml")
    if not PLAIN_NAME.fullmatch(name):
        raise ConfigError(f"{where}: [policy] name {name!r:.80}: letters, digits, . _ and - only, 64 at most")
    if policy.when.from_ > policy.when.until:
        raise ConfigError(f"{where}: [when] from is after until: the policy would never match")
    return replace(policy, policy=replace(policy.policy, name=name))


def _targets(data: Any, where: str) -> Mapping[str, TargetRule]:
    if not isinstance(data, dict):
        raise ConfigError(f"{where}: [targets] is not a table: write [targets.failure], [targets.gpus] and so on")
    for name in data:
        if name not in TARGETS:
            raise ConfigError(f"{where}: unknown table [targets.{name}]{nearest(name, set(TARGETS))}")
    return {name: _target(name, data[name], f"{where}: [targets.{name}]") for name in TARGETS if name in data}


def _target(name: str, data: Any, where: str) -> TargetRule:
    rule: TargetRule = read_table(TargetRule, data, where, READERS)
    if not rule.warn and not rule.reject:
        raise ConfigError(f"{where}: neither warn nor reject: set one, or remove the table")
    if rule.basis < 1:
        raise ConfigError(f"{where} basis: expected 1 or more")
    if rule.warn.p is not None and rule.reject.p is not None and rule.reject.p < rule.warn.p:
        raise ConfigError(f"{where}: reject {rule.reject} is below warn {rule.warn}: nobody would get a warning")
    return replace(rule, basis=_GPUS_BASIS) if name == GPUS and "basis" not in data else rule
