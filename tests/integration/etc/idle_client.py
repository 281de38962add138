"""The example client of idleness, loaded as a culler's author would: from its file."""

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Final

CLIENT: Final = Path(__file__).parents[3] / "etc/cullers/gpuwaste_idle.py"


@cache
def example_client() -> ModuleType:
    """Return the module."""
    spec = importlib.util.spec_from_file_location("gpuwaste_idle", CLIENT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclass looks there for its types
    spec.loader.exec_module(module)
    return module
