"""TRES strings as amounts (`cpu=4,mem=62.50G,gres/gpu:a100=2`), weights by TRES, and what an allocation is billed.

Read as slurmctld reads them (slurm_get_tres_weight_array): a unit behind a number makes it the weight of that many
(K 1024, M 1024 squared, to P); memory and burst buffers count MiB, so that K and M change nothing there. Names are
case-insensitive. One item that cannot be read makes the entire list unusable, as it does for slurmctld.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.core.text import words_of
from gpuwaste.core.units import parse_size_b
from gpuwaste.slurm.site.slurm_values import size, size_text, whole

_ABSENT: Final = frozenset({"", "(null)", "N/A"})
_GPU: Final = "gres/gpu"
_MEMORY: Final = "mem"
_WEIGHT: Final = re.compile(
    r"((?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:e[+-]?\d{1,3})?)(?:([KMGTP])[a-z]{0,8})?", re.ASCII | re.IGNORECASE
)
_UNITS: Final = "KMGTP"
_IN_MIB: Final = frozenset({"mem", "bb"})
_BILLING: Final = "billing"
_OF_NODES: Final = frozenset({"cpu", "mem", "node", "gres"})
_MIB: Final = 1 << 20
_GIB: Final = 1 << 30
_MOST: Final = float(1 << 62)
_MOST_ITEMS: Final = 1000


@dataclass(frozen=True, slots=True)
class GpuCount:
    """GPUs of an allocation; `by_type` is empty where Slurm does not account by type."""

    total: int
    by_type: dict[str, int]

    @property
    def type(self) -> str:
        """The one type, several joined with a comma, or "" where none is known."""
        return ",".join(sorted(self.by_type))


def parse_tres(text: str) -> dict[str, str]:
    """Return name -> amount as printed. Raises ParseError for an item without `=`."""
    text = text.strip()
    if text in _ABSENT:
        return {}
    amounts = {}
    for item in text.split(","):
        if not item:
            continue
        name, equals, amount = item.rpartition("=")
        if not equals or not name:
            raise ParseError(f"TRES {text[:60]!r}: {item[:40]!r} has no amount")
        amounts[name] = amount
    return amounts


def tres_name(text: str) -> str:
    """Return a TRES name as models and weights write it: the resource in lower case, a type as written."""
    kind, colon, rest = text.strip().partition(":")
    return kind.lower() + colon + rest


def tres_or_none(text: str) -> dict[str, str]:
    """Return parse_tres(), nothing for a text that is not a TRES list."""
    try:
        return parse_tres(text)
    except ParseError:
        return {}


def tres_amounts(text: str) -> dict[str, int]:
    """Return the amounts of a limit, memory in bytes (without a unit: MiB), names as tres_name. Raises ParseError."""
    found = {}
    for name, amount in parse_tres(text).items():
        known = tres_name(name)
        found[known] = size(amount) if known == _MEMORY else whole(amount, name)
    return found


def amounts_text(amounts: Mapping[str, int]) -> str:
    """Return amounts as `tres_amounts` reads them; memory in the largest unit that leaves an integer."""
    return ",".join(f"{name}={size_text(amount) if name == _MEMORY else amount}" for name, amount in amounts.items())


def gpu_count(tres: dict[str, str]) -> GpuCount:
    """Count GPUs once: the untyped total where there is one, else the sum of the types. Raises ParseError."""
    by_type = {
        name[len(_GPU) + 1 :]: _whole(name, amount) for name, amount in tres.items() if name.startswith(f"{_GPU}:")
    }
    by_type = {kind: count for kind, count in by_type.items() if kind and count}
    typed = sum(by_type.values())
    total = _whole(_GPU, tres[_GPU]) if _GPU in tres else typed
    # A site that accounts only the types, or whose untyped count was switched on later, has a smaller total.
    return GpuCount(max(total, typed), by_type)


def held_gpus(allocated: dict[str, str], requested: str, *, started: bool) -> GpuCount | None:
    """Count the GPUs that a run holds: by its allocation, or by its request where the allocation was not kept.

    A job that never started holds none; None where neither list is known. Raises ParseError.
    """
    held = allocated or (parse_tres(requested) if started else {})
    if not held:
        return None if started else GpuCount(0, {})
    return gpu_count(held)


def count_of_tres(tres: Mapping[str, str], name: str) -> int | None:
    """Return the count of a TRES, printed as 8, 1K or 1.50M; None where it is absent or not an integer."""
    text = tres.get(name, "")
    if not text or ("." in text and text[-1].isdigit()):
        return None
    try:
        return parse_size_b(text)
    except ParseError:
        return None


def memory_b(tres: dict[str, str]) -> int | None:
    """Return the amount of `mem` in bytes (M where no unit is printed), None where it is absent. Raises ParseError."""
    return parse_size_b(tres["mem"], "M") if "mem" in tres else None


def _whole(name: str, amount: str) -> int:
    if not (amount.isascii() and amount.isdigit() and len(amount) <= 9):  # noqa: PLR2004 far above any cluster
        raise ParseError(f"TRES {name}={amount[:20]!r}: expected a whole number")
    return int(amount)


def parse_weights(text: str) -> dict[str, float]:
    """Return the weight of one unit by TRES, of a byte for mem: 0 or more. Raises ParseError, which names the item."""
    items = [item.strip() for item in text.split(",")]
    if len(items) > _MOST_ITEMS:
        raise ParseError(f"{len(items)} weights: at most {_MOST_ITEMS}")
    return dict(_item(item) for item in items if item)


def weights_or_none(text: str) -> dict[str, float] | None:
    """Return parse_weights(), None for a list that cannot be read."""
    try:
        return parse_weights(text)
    except ParseError:
        return None


def weights_text(weights: Mapping[str, float]) -> str:
    """Return weights as parse_weights reads them: memory by GiB, exactly, as that is a power of two."""
    return ",".join(
        f"{name}={weight * _GIB!r}G" if name == _MEMORY else f"{name}={weight!r}" for name, weight in weights.items()
    )


def billing(weights: Mapping[str, float], tres: Mapping[str, int], *, largest: bool = False) -> float:
    """Return the billing TRES of an allocation; without weights its CPUs.

    With `largest` (MAX_TRES of PriorityFlags) the largest of cpu, mem, node and gres counts, and all others are added.
    """
    if not weights:
        return float(tres.get("cpu", 0))
    held = {name.lower(): amount for name, amount in tres.items()}
    of_nodes, others = [0.0], 0.0
    for name, weight in weights.items():
        part = weight * held.get(name.lower(), 0) if name != _BILLING else 0.0
        if largest and name.partition("/")[0] in _OF_NODES:
            of_nodes.append(part)
        else:
            others += part
    return max(of_nodes) + others


def _item(item: str) -> tuple[str, float]:
    name, _, amount = item.partition("=")
    found = _WEIGHT.fullmatch(amount.strip())
    weight = float(found[1]) if found else _MOST
    if not name.strip() or found is None or weight >= _MOST:
        raise ParseError(f"{words_of(item, 60)}: expected TRES=WEIGHT, such as CPU=1.0 or Mem=0.25G")
    name = tres_name(name)
    kind = name.partition("/")[0]
    power = _UNITS.index(found[2].upper()) + 1 if found[2] else 0
    of = 1024 ** max(0, power - 2 if kind in _IN_MIB else power)
    return name, weight / of / (_MIB if name == _MEMORY else 1)
