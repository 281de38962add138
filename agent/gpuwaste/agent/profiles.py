"""Profiling counters, joined to the readings of the GPUs that they are of."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpuwaste.agent.model import GpuIdentity, GpuProfile, GpuReading


def with_profiles(
    gpus: Sequence[GpuIdentity],
    readings: Mapping[str, GpuReading],
    profiles: Mapping[tuple[str, str], GpuProfile],
) -> dict[str, GpuReading]:
    """Return the readings with the profiles of their GPUs: what is no GPU of `gpus` is left out.

    A profile never changes a utilization. Where the driver saw work and every ratio is 0, the counters are not running
    (another profiler holds them): the profile is left out. A profile that a reading has already stays.
    """
    found = dict(readings)
    for gpu in gpus:
        reading = found.get(gpu.uuid)
        profile = profiles.get((gpu.parent_uuid or gpu.uuid, gpu.instance.partition("/")[0]))
        if reading is not None and profile is not None and reading.profile is None and not _stopped(reading, profile):
            found[gpu.uuid] = replace(reading, profile=profile)
    return found


def _stopped(reading: GpuReading, profile: GpuProfile) -> bool:
    ratios = (profile.sm_active, profile.tensor_active, profile.dram_active)
    return bool(reading.util_pct) and not any(ratios)
