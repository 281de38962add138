"""Builds the simulated NVML and its load program, and puts the library where programs find it."""

import ctypes
import fcntl
import os
import subprocess
import sys
from pathlib import Path

from gpuwaste.core.errors import GpuwasteError

_ROOT = Path(__file__).resolve().parents[3]


def build_native(out: Path | None = None, *more: str) -> Path:
    """Build what has changed into `out` (default build/native of the checkout) and return that directory.

    It holds libnvidia-ml.so.1, libnvidia-ml.so (as pmdanvidia names it), libamd_smi.so.26 and gpuwaste-load. `more`
    are further targets of native/Makefile.
    """
    directory = out or _ROOT / "build" / "native"
    directory.mkdir(parents=True, exist_ok=True)
    command = [
        "make",
        "--no-print-directory",
        "-C",
        str(_ROOT / "native"),
        f"OUT={directory}",
        f"PYTHON={sys.executable}",
        "all",
        *more,
    ]
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests that run side by side build once
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise GpuwasteError(f"the simulated GPU libraries do not build in {directory}: {done.stderr.strip()}")
    return directory


def build_rocm_smi(out: Path | None = None) -> Path | None:
    """Build the simulated librocm_smi64 too and return the directory; None without the vendor's header."""
    if not Path("/usr/include/rocm_smi/rocm_smi.h").exists():
        return None
    return build_native(out, "rocm")


def build_level_zero(out: Path | None = None) -> Path | None:
    """Build the simulated libze_loader too and return the directory; None without the vendor's header."""
    if not Path("/usr/include/level_zero/zes_api.h").exists():
        return None
    return build_native(out, "ze")


def library_env(build: Path) -> dict[str, str]:
    """Return the variable that lets a program started with it load the simulated library as libnvidia-ml.so.1."""
    earlier = os.environ.get("LD_LIBRARY_PATH")
    return {"LD_LIBRARY_PATH": f"{build}:{earlier}" if earlier else str(build)}


def preload(build: Path) -> ctypes.CDLL:
    """Load the library into this process, where the loader's path was fixed at its start.

    Whoever asks for libnvidia-ml.so.1 afterwards, pynvml too, gets this one: a soname is loaded once.
    """
    return ctypes.CDLL(str(build / "libnvidia-ml.so.1"), mode=ctypes.RTLD_GLOBAL)


def preload_vendor(build: Path, which: str) -> ctypes.CDLL:
    """Load a simulated library, "amdsmi", "rocm_smi" or "level_zero", into this process; see preload."""
    names = {"amdsmi": "libamd_smi.so.26", "rocm_smi": "librocm_smi64.so.1", "level_zero": "libze_loader.so.1"}
    return ctypes.CDLL(str(build / names[which]), mode=ctypes.RTLD_GLOBAL)
