"""NVML's errors in the agent's words: the driver is gone, one GPU is gone, or one field cannot be read."""

from collections.abc import Callable
from typing import Any, Final

import pynvml

from gpuwaste.agent.collectors._errors import FieldError, GpuLostError
from gpuwaste.agent.errors import CollectorError
from gpuwaste.ledger.sample import UnknownReason

_DRIVER: Final = frozenset(
    {
        pynvml.NVML_ERROR_UNINITIALIZED,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    }
)
_LOST: Final = frozenset({pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED})
_ABSENT: Final = frozenset(
    {
        pynvml.NVML_ERROR_NOT_SUPPORTED,
        pynvml.NVML_ERROR_NOT_FOUND,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_NO_PERMISSION,
        pynvml.NVML_ERROR_INVALID_ARGUMENT,
    }
)


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call NVML. Raises CollectorError, GpuLostError or FieldError, by what the error takes away."""
    try:
        return function(*arguments)
    except pynvml.NVMLError as error:
        code = error.value
        if code in _DRIVER:
            raise CollectorError(f"NVML: {error}: is the NVIDIA driver loaded?") from error
        if code in _LOST:
            raise GpuLostError(str(error)) from error
        raise FieldError(UnknownReason.NOT_SUPPORTED if code in _ABSENT else UnknownReason.DRIVER) from error


def optional(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call NVML; None where this field cannot be read."""
    try:
        return call(function, *arguments)
    except FieldError:
        return None
