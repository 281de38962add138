"""FLOP/s of large matrix products on a GPU type: the peak of its data sheet, and what users have published."""

from statistics import median

from gpuwaste.slurm.gpu_types import GpuType, devices


def published_flops(device: GpuType, dtype: str) -> float:
    """Return FLOP/s of large products that users have published.

    For a GPU without such figures, the share of the peak and the most FLOP/s for a watt of its family with that kind
    of memory hold, whichever is less; for a family without any, the share of all GPUs.
    """
    there = device.reaches.get(dtype)  # type: ignore[call-overload]
    if there is not None:
        return float(there) * 1e12
    peak = peak_of(device, dtype)
    family = [one for one in devices() if memory_family(one) == memory_family(device) and dtype in one.reaches]
    if not family:
        return peak * _share([one for one in devices() if dtype in one.reaches], dtype)
    rates = [one.reaches[dtype] * 1e12 for one in family]  # type: ignore[index]
    for_watt = max(rate / one.board_w for one, rate in zip(family, rates, strict=True))
    return min(peak, _share(family, dtype) * peak, for_watt * device.board_w)


def _share(of: list[GpuType], dtype: str) -> float:
    """Return the median share of the peak that was published; 1 where there is none."""
    rates = [(one.reaches[dtype] * 1e12, peak_of(one, dtype)) for one in of]  # type: ignore[index]
    return median(rate / peak for rate, peak in rates) if rates else 1.0


def peak_of(device: GpuType, dtype: str) -> float:
    """Return peak FLOP/s of products: CDNA multiplies f32 in matrix units at full precision."""
    if dtype == "f32" and device.matrix_f32_tflops:
        return device.matrix_f32_tflops * 1e12
    return device.peak_flops(dtype)


def memory_family(device: GpuType) -> str:
    """Return the family with its kind of memory: GPUs of one generation are built in two processes by that."""
    return f"{device.family} {memory_class(device)}"


def memory_class(device: GpuType) -> str:
    """Return hbm or gddr."""
    return "hbm" if device.memory_kind.startswith("hbm") else "gddr"
