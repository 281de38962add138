"""The arrays of a time model as a npz file: numbers and texts, no pickle; checked before anything is computed."""

import io
import zipfile
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.errors import ModelError, ParseError
from gpuwaste.core.text import words_of
from gpuwaste.estimate.gp import BLOCKS, KERNEL_SIZE, Kernel, ResidualGp
from gpuwaste.estimate.roofline import PARTS, Roofline
from gpuwaste.estimate.time_model import FitSupport, TimeModel
from gpuwaste.jobs.history.array_file import read_arrays

MAX_PROGRAMS: Final = 3000
"""Of one type: the file keeps the inverse of their covariance."""
_MAX_KEYS: Final = 1000
_MAX_UNPACKED_B: Final = 128 * 1024**2
_WIDTH: Final = sum(width for _, width in BLOCKS)
_MOST: Final = 1e30  # a number beyond it is an error of the file
Arrays = Mapping[str, NDArray[Any]]


def pack(model: TimeModel) -> bytes:
    """Return the file of a model; equal models give equal bytes."""
    arrays: dict[str, NDArray[Any]] = {
        **_roofline_arrays("", model.roofline),
        **_roofline_arrays("base_", model.base),
        **_gp_arrays("", model.gp),
    }
    if model.correction is not None:
        arrays |= _gp_arrays("correction_", model.correction)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in sorted(arrays.items()):
            member = zipfile.ZipInfo(f"{name}.npy")  # the date of a ZipInfo is 1980, whenever it is made
            large = name.endswith("inverse")  # half of a symmetric matrix of digits that no packing makes smaller
            member.compress_type = zipfile.ZIP_STORED if large else zipfile.ZIP_DEFLATED
            content = io.BytesIO()
            np.lib.format.write_array(content, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(member, content.getvalue())
    return stream.getvalue()


def unpack(data: bytes, grounds: FitSupport, where: str) -> TimeModel:
    """Return the model of a file. Raises ModelError: one line that names the file."""
    again = "train again or promote another bundle"
    try:
        arrays = read_arrays(data, _MAX_UNPACKED_B)
        roofline, base = _roofline(arrays, ""), _roofline(arrays, "base_")
        correction = _gp(arrays, "correction_") if "correction_kernel" in arrays else None
        return TimeModel(grounds, roofline, base, _gp(arrays, ""), correction)
    except (ParseError, KeyError, ValueError, np.linalg.LinAlgError) as error:
        raise ModelError(f"{where}: not the arrays of a time model: {words_of(error, 200)}: {again}") from error


def _roofline_arrays(prefix: str, roofline: Roofline) -> Arrays:
    return {
        f"{prefix}keys": _texts(roofline.keys),
        f"{prefix}coefficients": roofline.coefficients,
        f"{prefix}constant_s": np.array([roofline.constant_s]),
    }


def _gp_arrays(prefix: str, gp: ResidualGp) -> Arrays:
    return {
        f"{prefix}kernel": gp.kernel.numbers,
        f"{prefix}features": gp.features,
        f"{prefix}families": _texts(gp.families),
        f"{prefix}residuals": gp.residuals,
        f"{prefix}inverse": gp.inverse[np.tril_indices(len(gp.residuals))],
    }


def _roofline(arrays: Arrays, prefix: str) -> Roofline:
    keys = _strings(arrays[f"{prefix}keys"], _MAX_KEYS)
    coefficients = _numbers(arrays[f"{prefix}coefficients"], (len(keys), PARTS), least=0.0)
    constant = _numbers(arrays[f"{prefix}constant_s"], (1,), least=0.0)
    return Roofline(keys, coefficients, float(constant[0]))


def _gp(arrays: Arrays, prefix: str) -> ResidualGp:
    families = _strings(arrays[f"{prefix}families"], MAX_PROGRAMS)
    residuals = _numbers(arrays[f"{prefix}residuals"], (len(families),))
    features = _numbers(arrays[f"{prefix}features"], (len(families), _WIDTH))
    numbers = _numbers(arrays[f"{prefix}kernel"], (KERNEL_SIZE,))
    if np.abs(numbers).max() > 50:  # noqa: PLR2004 a logarithm whose exponential is no variance any more
        raise ValueError("kernel out of range")
    inverse = _symmetric(
        _numbers(arrays[f"{prefix}inverse"], (len(families) * (len(families) + 1) // 2,)), len(families)
    )
    return ResidualGp(Kernel(numbers), features, families, residuals, inverse=inverse)


def _symmetric(half: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Return the matrix whose lower half, row by row, is given."""
    found = np.zeros((size, size))
    found[np.tril_indices(size)] = half
    return found + np.tril(found, -1).T


def _texts(values: tuple[str, ...]) -> NDArray[Any]:
    return np.array(values, dtype=np.str_) if values else np.zeros(0, dtype="U1")


def _strings(array: NDArray[Any], most: int) -> tuple[str, ...]:
    if array.ndim != 1 or array.dtype.kind != "U" or len(array) > most:
        raise ValueError(f"texts of {array.dtype} {array.shape}")
    return tuple(str(value) for value in array)


def _numbers(array: NDArray[Any], shape: tuple[int, ...], least: float = -_MOST) -> NDArray[np.float64]:
    if array.dtype != np.float64 or array.shape != shape:
        raise ValueError(f"{array.dtype} {array.shape}, expected float64 {shape}")
    if not (np.isfinite(array).all() and (array >= least).all() and (array <= _MOST).all()):
        raise ValueError("numbers out of range")
    return array
