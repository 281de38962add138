"""TRES strings: `cpu=4,mem=62.50G,gres/gpu=2,gres/gpu:a100=2` as a mapping, the amounts and the GPUs in it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.core.units import parse_size_b
from gpuwaste.slurm.site.slurm_values import size, size_text, whole

_ABSENT: Final = frozenset({"", "(null)", "N/A"})
_GPU: Final = "gres/gpu"
_MEMORY: Final = "mem"


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
    """Return a TRES' name as models and weights have it: what it is in lower case, a type as written."""
    kind, colon, rest = text.strip().partition(":")
    return kind.lower() + colon + rest


def tres_or_none(text: str) -> dict[str, str]:
    """Return parse_tres(), nothing for a text that is no TRES list."""
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
    """Return amounts as `tres_amounts` reads them; memory in the largest unit that leaves a whole number."""
    return ",".join(f"{name}={size_text(amount) if name == _MEMORY else amount}" for name, amount in amounts.items())


def gpu_count(tres: dict[str, str]) -> GpuCount:
    """Count GPUs once: the untyped total where it is there, else the sum of the types. Raises ParseError."""
    by_type = {
        name[len(_GPU) + 1 :]: _whole(name, amount) for name, amount in tres.items() if name.startswith(f"{_GPU}:")
    }
    by_type = {kind: count for kind, count in by_type.items() if kind and count}
    typed = sum(by_type.values())
    total = _whole(_GPU, tres[_GPU]) if _GPU in tres else typed
    # A site that accounts the types alone, or whose untyped count was switched on later, has a smaller total.
    return GpuCount(max(total, typed), by_type)


def held_gpus(allocated: dict[str, str], requested: str, *, started: bool) -> GpuCount | None:
    """Count the GPUs that a run holds: by its allocation, by its request where the allocation was not kept.

    A job that never started holds none; None where neither list is known. Raises ParseError.
    """
    held = allocated or (parse_tres(requested) if started else {})
    if not held:
        return None if started else GpuCount(0, {})
    return gpu_count(held)


def count_of_tres(tres: Mapping[str, str], name: str) -> int | None:
    """Return the count of a TRES, printed as 8, 1K or 1.50M; None where it is absent or no whole number."""
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
