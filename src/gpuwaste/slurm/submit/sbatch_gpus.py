"""sbatch's options for GPUs: --gres, --gpus and its like, --ntasks-per-gpu.

Since Slurm 24.11 (or earlier, after 22.05) a count may follow an equals sign: gpu=2, gpu:a100=2.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.submit.gpu_amounts import GpusAsked, counted
from gpuwaste.slurm.submit.gpu_items import gpu_item, typed_count
from gpuwaste.slurm.submit.sbatch_values import bad, value, whole
from gpuwaste.slurm.submit.sbatch_words import Given

_T = TypeVar("_T")


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
    given = options[name]
    return [_read(typed_count, item, given, "[TYPE:]COUNT") for item in value(options, name).split(",") if item]


def _gres(options: Mapping[str, Given]) -> list[tuple[str, int]]:
    """Return type and count of the GPUs in a --gres list; other resources are passed over."""
    found = []
    for item in value(options, "gres").split(",") if "gres" in options else ():
        if not item.removeprefix("gres/").removeprefix("gres:"):
            raise bad(options["gres"], "gpu[:TYPE][:COUNT]")
        found.append(_read(gpu_item, item, options["gres"], "gpu[:TYPE][:COUNT]"))
    return [asked for asked in found if asked is not None]


def _read(reader: Callable[[str], _T], item: str, given: Given, expected: str) -> _T:
    try:
        return reader(item)
    except ParseError as error:
        raise bad(given, expected) from error
