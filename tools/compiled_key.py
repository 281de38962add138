"""Print what tells compiled loops apart: their sources, numba, LLVM, Python, the processor (tools/compiled)."""

import hashlib
import sys

import llvmlite
import numba
from llvmlite import binding

from gpuwaste.sim.compiled import SOURCES, stamp


def main() -> None:
    """Print the key as a name of a file."""
    features = binding.get_host_cpu_features().flatten()
    made_by = (sys.version, numba.__version__, llvmlite.__version__, binding.get_host_cpu_name(), features)
    sys.stdout.write(hashlib.sha256("\n".join((stamp(SOURCES), *made_by)).encode()).hexdigest()[:24] + "\n")


if __name__ == "__main__":
    main()
