"""Weights by TRES, as TRESBillingWeights and PriorityWeightTRES have them, and what an allocation is billed.

Read as slurmctld reads them (slurm_get_tres_weight_array): a unit behind a number makes it the weight of that many
(K 1024, M 1024 squared, to P); memory and burst buffers count MiB, so that K and M change nothing there. Names are the
same in any case. One item that cannot be read makes the whole list worthless, as it does for slurmctld.
"""

import re
from collections.abc import Mapping
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.core.text import words_of
from gpuwaste.slurm.accounting.tres import tres_name

_WEIGHT: Final = re.compile(
    r"((?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:e[+-]?\d{1,3})?)(?:([KMGTP])[a-z]{0,8})?", re.ASCII | re.IGNORECASE
)
_UNITS: Final = "KMGTP"
_IN_MIB: Final = frozenset({"mem", "bb"})
_MEMORY: Final = "mem"
_BILLING: Final = "billing"
_OF_NODES: Final = frozenset({"cpu", "mem", "node", "gres"})
_MIB: Final = 1 << 20
_GIB: Final = 1 << 30
_MOST: Final = float(1 << 62)
_MOST_ITEMS: Final = 1000


def parse_weights(text: str) -> dict[str, float]:
    """Return the weight of one by TRES, of a byte for mem: 0 or more. Raises ParseError, which names the item."""
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
