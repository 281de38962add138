"""FLOP/s of large matrix products on a GPU type: the peak of its data sheet, and what users have published."""

from statistics import median

from gpuwaste.slurm.gpu_types import GpuType, devices


def published_flops(device: GpuType, dtype: str) -> float:
    """Return FLOP/s of large products that users have published.

    For a GPU without such figures, the share of the peak and the FLOP/s for a watt of its family hold, whichever is
    less; for a family without any, the peak.
    """
    there = device.reaches.get(dtype)  # type: ignore[call-overload]
    if there is not None:
        return float(there) * 1e12
    peak = peak_of(device, dtype)
    family = [one for one in devices() if one.family == device.family and dtype in one.reaches]
    if not family:
        return peak
    rates = [one.reaches[dtype] * 1e12 for one in family]  # type: ignore[index]
    share = median(rate / peak_of(one, dtype) for one, rate in zip(family, rates, strict=True))
    for_watt = median(rate / one.board_w for one, rate in zip(family, rates, strict=True))
    return min(peak, share * peak, for_watt * device.board_w)


def peak_of(device: GpuType, dtype: str) -> float:
    """Return peak FLOP/s of products: CDNA multiplies f32 in matrix units at full precision."""
    if dtype == "f32" and device.matrix_f32_tflops:
        return device.matrix_f32_tflops * 1e12
    return device.peak_flops(dtype)
