"""Another limit or tier of a partition: `partition:gpu:MaxTime=12:00:00+PriorityTier=10`."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from gpuwaste.core.errors import ParseError, UsageError
from gpuwaste.core.text import words_of
from gpuwaste.sim.whatif import WhatIfCase, WhatIfChange
from gpuwaste.slurm.site import slurm_values as values

TITLE: Final = "other limits or tiers of a partition"
VALUE: Final = "NAME:SETTING=VALUE+..."
NEEDS_CLUSTER: Final = True
_Read = Callable[[str], Any]
_SETTINGS: Final[dict[str, tuple[str, str, _Read]]] = {
    "maxtime": ("MaxTime", "max_time_s", values.seconds),
    "maxnodes": ("MaxNodes", "max_nodes", lambda text: values.limit(text, "MaxNodes")),
    "prioritytier": ("PriorityTier", "priority_tier", lambda text: values.whole(text, "PriorityTier")),
    "priorityjobfactor": (
        "PriorityJobFactor",
        "priority_job_factor",
        lambda text: values.whole(text, "PriorityJobFactor"),
    ),
}
"""By lower-case name: the name in slurm.conf, the field of a Partition, how its value is read."""
_MOST: Final = 65533  # of a tier and of a factor: slurm.conf(5)
_NOTES: Final = (
    "A job above a new limit is left out on both sides; in reality its user requests less.",
    "A higher limit adds no job that the base leaves out.",
)


def change(case: WhatIfCase, value: str) -> WhatIfChange:
    """Return the same jobs on a cluster with these settings of a partition. Raises UsageError."""
    cluster = case.nodes("partition")
    name, _, words = value.partition(":")
    place = next((k for k, each in enumerate(cluster.partitions) if each.name == name), None)
    if place is None:
        known = ", ".join(each.name for each in cluster.partitions)
        raise UsageError(
            f"what-if partition:{words_of(value, 40)}: expected a partition and settings, as in "
            f"partition:{words_of(cluster.partitions[0].name, 40)}:MaxTime=12:00:00; partitions: {words_of(known, 200)}"
        )
    given = dict(_setting(pair) for pair in words.split("+"))
    partitions = list(cluster.partitions)
    partitions[place] = replace(partitions[place], **given)
    return WhatIfChange(case.trace, case.processors, {}, _NOTES, cluster=replace(cluster, partitions=tuple(partitions)))


def _setting(pair: str) -> tuple[str, Any]:
    """Return the field of a Partition and its value. Raises UsageError."""
    word, given, text = pair.partition("=")
    known = _SETTINGS.get(word.lower())
    if known is None or not given:
        names = ", ".join(name for name, _, _ in _SETTINGS.values())
        raise UsageError(f"what-if partition: {words_of(pair, 40)}: expected SETTING=VALUE of {names}")
    name, field, read = known
    try:
        found = read(text[:40])
    except ParseError as error:
        raise UsageError(f"what-if partition: {name}: {error}") from error
    least, most = (0, _MOST) if name.startswith("Priority") else (1, values.MOST)
    if found is not None and not least <= found <= most:
        raise UsageError(f"what-if partition: {name}={text[:20]}: out of range")
    return field, found
