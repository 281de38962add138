"""Pythons of their own for tests: what `make frameworks` makes, or what the environment names."""

import os
from pathlib import Path
from typing import Final

_MADE: Final = Path(__file__).parents[3] / "build" / "frameworks"


def framework_python(name: str) -> str | None:
    """Return the Python that $GPUWASTE_NAME_PYTHON names, or that of `tools/framework-venvs NAME`; None without."""
    made = _MADE / name / "bin" / "python"
    return os.environ.get(f"GPUWASTE_{name.upper()}_PYTHON") or (str(made) if made.exists() else None)
