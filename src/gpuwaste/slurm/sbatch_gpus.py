"""sbatch's options for GPUs: --gres, --gpus and its like, --ntasks-per-gpu.

Since Slurm 24.11 (or earlier, after 22.05) a count may follow an equals sign: gpu=2, gpu:a100=2.
"""

import re
from collections.abc import Mapping
from typing import Final

from gpuwaste.slurm.gpu_amounts import KILO, GpusAsked, counted
from gpuwaste.slurm.sbatch_values import bad, value, whole
from gpuwaste.slurm.sbatch_words import Given

_COUNT: Final = re.compile(r"(?:([A-Za-z_][\w.\-]*)[:=])?(\d{1,9})([km]?)", re.ASCII | re.IGNORECASE)
_TYPE: Final = re.compile(r"[A-Za-z_][\w.\-]{0,63}", re.ASCII)


def gpus_asked(options: Mapping[str, Given]) -> GpusAsked:
    """Return what the options ask for. Raises ParseError or UsageError for a value that sbatch refuses."""
    on_node = [*_gres(options), *_list(options, "gpus-per-node")]
    return GpusAsked(
        of_job=counted(_list(options, "gpus")),
        of_node=counted(on_node),
        of_socket=counted(_list(options, "gpus-per-socket")),
        of_task=counted(_list(options, "gpus-per-task")),
        tasks_of_gpu=whole(options, "ntasks-per-gpu") or 0,
    )


def _list(options: Mapping[str, Given], name: str) -> list[tuple[str, int]]:
    """Return type and count of each item of --gpus and its like: TYPE:COUNT, COUNT or TYPE, with commas between."""
    if name not in options:
        return []
    return [_typed(item, options[name], "[TYPE:]COUNT") for item in value(options, name).split(",") if item]


def _gres(options: Mapping[str, Given]) -> list[tuple[str, int]]:
    """Return type and count of the GPUs in a --gres list; other resources are passed over."""
    found = []
    for item in value(options, "gres").split(",") if "gres" in options else ():
        name, sign, rest = _parted(item.removeprefix("gres/").removeprefix("gres:"))
        if not name or name.startswith("gpu(") or (name == "gpu" and sign == "=" and not rest[:1].isdigit()):
            raise bad(options["gres"], "gpu[:TYPE][:COUNT]")
        if name == "gpu":
            found.append(_typed(rest, options["gres"], "gpu[:TYPE][:COUNT]") if sign else ("", 1))
    return found


def _parted(item: str) -> tuple[str, str, str]:
    """Return the name of a resource, the sign after it and the rest."""
    end = min((at for sign in ":=" if (at := item.find(sign)) >= 0), default=len(item))
    return item[:end], item[end : end + 1], item[end + 1 :]


def _typed(text: str, given: Given, expected: str) -> tuple[str, int]:
    match = _COUNT.fullmatch(text)
    if match is not None:
        return match[1] or "", int(match[2]) * KILO[match[3].lower()]
    if _TYPE.fullmatch(text):
        return text, 1
    raise bad(given, expected)
