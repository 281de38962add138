"""Scripts that users run where their framework is installed; gpuwaste prints them and never runs them."""

from importlib import resources
from typing import Final

PROBES: Final = ("torch", "jax")


def probe_text(framework: str) -> str:
    """Return the text of a framework's probe."""
    return resources.files(__package__).joinpath(f"{framework}_probe.py").read_text(encoding="utf-8")
