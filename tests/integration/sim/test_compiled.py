"""Compiled loops in their cache: what was compiled from other sources is not used."""

import os
import subprocess
import sys
from pathlib import Path

_RUN = """
import sys
from pathlib import Path
from gpuwaste.sim import compiled
compiled.SOURCES = (Path(sys.argv[1]),)
sys.path.insert(0, sys.argv[1])
import caller
print(caller.twice(1), sum(caller.twice.stats.cache_hits.values()))
"""
_CALLER = """
from callee import step
from gpuwaste.sim.compiled import compiled
@compiled
def twice(x):
    return step(step(x))
"""
_CALLEE = """
from gpuwaste.sim.compiled import compiled
@compiled
def step(x):
    return x + {}
"""


def test_a_changed_callee_compiles_its_callers_again(tmp_path: Path) -> None:
    """After an upgrade that changes one function, no caller runs with the old one; else the cache is used."""
    source, kept = tmp_path / "source", tmp_path / "kept"
    source.mkdir()
    (source / "caller.py").write_text(_CALLER)
    printed = []
    for step in (1, 1, 5):
        (source / "callee.py").write_text(_CALLEE.format(step))
        done = subprocess.run(
            [sys.executable, "-c", _RUN, str(source)], capture_output=True, text=True, check=True,
            env={**os.environ, "NUMBA_CACHE_DIR": str(kept), "NUMBA_DISABLE_JIT": "0", "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
        printed.append(done.stdout.split())
    assert [value for value, _ in printed] == ["3", "3", "11"]
    assert [hits for _, hits in printed] == ["0", "1", "0"]
