"""TRES lists of a file: names as sacct prints them, or numbers as slurmdbd's tables keep them (1=4,2=8000,1002=1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.accounting.tres import gpu_count, memory_b, parse_tres
from gpuwaste.slurm.formats.no_value import is_no_number

OWN_IDS: Final = {
    "1": "cpu",
    "2": "mem",
    "3": "energy",
    "4": "node",
    "5": "billing",
    "6": "fs/disk",
    "7": "vmem",
    "8": "pages",
}  # fmt: skip - the ids that are the same at every site; a site's gres have their own from 1001 on
_ABSENT: Final = frozenset({"", "(null)", "N/A", "NULL", "None", "null", "NA", "nan", "NaN", "-", "\\N"})
_MEBI: Final = frozenset({"mem", "vmem"})  # kept as MiB


@dataclass(frozen=True, slots=True)
class TresList:
    """A list that can be stored: `text` has names alone, `unknown` the ids without a name."""

    text: str = ""
    unknown: tuple[str, ...] = ()

    @property
    def gpus_known(self) -> bool:
        """Whether the list tells how many GPUs there are: one of its unknown ids may be a GPU."""
        return bool(self.text) and (not self.unknown or "gres/gpu" in self.text)

    def amount(self, name: str) -> str:
        """Return an amount as printed, "" where it is not there."""
        return parse_tres(self.text).get(name, "")


def read_tres(text: str, names: Mapping[str, str]) -> TresList:
    """Read a list; `names` are the site's ids. Amounts that stand for "not set" are left out. Raises ParseError."""
    if text.strip() in _ABSENT:
        return TresList()
    parts, unknown = [], []
    for name, amount in parse_tres(text.strip().strip("{}")).items():
        known = name if not name.isdigit() else names.get(name) or OWN_IDS.get(name)
        if amount.isascii() and amount.isdigit() and (len(amount) > 20 or is_no_number(int(amount))):  # noqa: PLR2004
            continue
        if known is None:
            unknown.append(name)
        else:
            parts.append(f"{known}={amount}{'M' if known in _MEBI and name.isdigit() else ''}")
    found = TresList(",".join(parts), tuple(unknown))
    amounts = parse_tres(found.text)
    gpu_count(amounts)
    memory_b(amounts)
    return found


def check_names(names: Mapping[str, str]) -> None:
    """Raise ParseError for a key that is no id or a name that is no TRES."""
    for number, name in names.items():
        if not (number.isascii() and number.isdigit()) or not name or any(sign in name for sign in "=, "):
            raise ParseError(f'{number!r} = {name!r}: expected an id and its TRES: "1002" = "gres/gpu"')
