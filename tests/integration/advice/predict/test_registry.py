"""The registry of models through kills of a process that promotes."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.unit.advice.predict.test_registry import three_bundles

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[4]


def test_kill_9_at_any_moment_leaves_a_champion_that_loads(tmp_path: Path) -> None:
    """A process that promotes without end is killed again and again; each time the link and the way back are whole."""
    registry = three_bundles(tmp_path)
    registry.promote("one")
    registry.promote("two")
    script = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from tests.unit.advice.predict.bundles import FEATURES
        from gpuwaste.advice.predict.bundle import Registry
        registry = Registry(Path(sys.argv[1]), FEATURES)
        while True:
            for name in ("one", "two", "three"):
                registry.promote(name)
                print(name, flush=True)
            registry.rollback()
        """
    )
    path = os.pathsep.join([str(ROOT), *(str(ROOT / root) for root in ("src", "agent", "models", "testing"))])
    for number in range(4):
        process = subprocess.Popen(
            [sys.executable, "-c", script, registry.models_dir],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert process.stdout is not None
        for _ in range(1 + 5 * number):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.wait(30)
        process.stdout.close()
        loaded = registry.load_champion()
        assert loaded is not None
        assert len(registry._past()) > 1
        registry.promote("one")
        registry.promote("two")
        assert registry.rollback().manifest.name == "one"
