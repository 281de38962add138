"""The GPUs in a list that asks for GRES: --gres, --gpus and its like, tres_per_* of a job, sacct's ReqGRES.

An item is gpu[:TYPE][:COUNT], behind gres: up to Slurm 22.05 and gres/ later, and without gpu: in --gpus and its like.
The type is any text before the last colon, so it may begin with a digit (1g.10gb, 3090); a last part that is no number
is a type, of one GPU. See slurm_get_next_tres() in src/common/slurm_protocol_defs.c, and _get_next_gres() in
src/common/gres.c of 22.05, which does not read the `=` before a count that later releases take.
"""

import re
from collections.abc import Iterator
from typing import Final

from gpuwaste.core.errors import ParseError

_NUMBER: Final = re.compile(r"(\d{1,20})(?:([kmgtp])(i?b)?)?", re.ASCII | re.IGNORECASE)
_SUFFIXES: Final = "kmgtp"
_LARGEST: Final = (1 << 64) - 1  # strtoull() gives this for a number that is too large, and Slurm takes it for none
MOST: Final = (1 << 31) - 1
"""Far above any cluster; what is larger counts as this."""
_NAME: Final = "gpu"
_FORM: Final = "expected gpu[:TYPE][:COUNT]"


def count_of(text: str) -> int | None:
    """Return a count as Slurm reads it (2, 1k, 1KiB: 1024, 1kb: 1000), at most 2^31 - 1; None for no number."""
    found = _NUMBER.fullmatch(text)
    if found is None or int(found[1]) >= _LARGEST:
        return None
    base = 1000 if (found[3] or "").lower() == "b" else 1024
    power = _SUFFIXES.index(found[2].lower()) + 1 if found[2] else 0
    return min(int(found[1]) * int(base**power), MOST)


def typed_count(text: str) -> tuple[str, int]:
    """Return the type, "" for any, and the number of TYPE:COUNT, TYPE=COUNT, COUNT or TYPE. Raises ParseError."""
    kind, sign, last = _parted(text)
    count = count_of(last)
    if not last or (count is None and sign):
        raise ParseError(f"{text[:40]!r}: expected [TYPE:]COUNT")
    return (last, 1) if count is None else (kind, count)


def gpu_item(item: str) -> tuple[str, int] | None:
    """Return type and number of the GPUs that one item of a GRES list asks for, None where it is another resource.

    Raises ParseError for one that Slurm takes for neither.
    """
    item = item.removeprefix("gres/").removeprefix("gres:")
    if item == _NAME:
        return "", 1
    if not item.startswith(_NAME) or item[len(_NAME)] not in ":=(":
        return None
    if item[len(_NAME)] == "(":
        raise ParseError(f"{item[:40]!r}: {_FORM}")
    try:
        if item[len(_NAME)] == "=":
            return "", _only_count(item[len(_NAME) + 1 :])
        return typed_count(item[len(_NAME) + 1 :])
    except ParseError as error:
        raise ParseError(f"{item[:40]!r}: {_FORM}") from error


def gpu_items(text: str) -> Iterator[tuple[str, int]]:
    """Yield type and number of the GPUs in a list; an item that Slurm refuses asks for none."""
    for item in text.split(","):
        try:
            found = gpu_item(item.strip())
        except ParseError:
            continue
        if found is not None:
            yield found


def _parted(text: str) -> tuple[str, str, str]:
    """Return what is before the last `=`, else before the last colon, that sign, and what follows it."""
    return text.rpartition("=" if "=" in text else ":")


def _only_count(text: str) -> int:
    count = count_of(text)
    if count is None:
        raise ParseError(f"{text[:40]!r}: expected a number")
    return count
