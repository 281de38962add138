"""What the tests of the AMD and the Intel collector share: a simulated node, read by a script in its own process."""

from collections.abc import Callable
from pathlib import Path

from gpuwaste.testing.simnvml import SimNode

HELPERS = """
import subprocess, sys, time
from pathlib import Path
from gpuwaste.agent.bounded_calls import BoundedCollector
from gpuwaste.agent.bounded_calls import CollectorError
from gpuwaste.testing.simnvml import *
node = SimNode(Path(sys.argv[1]))
def by_index(scan, field):
    found = [getattr(scan.readings[gpu.uuid], field) for gpu in scan.gpus]
    return [str(value) if field == "reason" else value for value in found]
def until(condition):
    for _ in range(200):
        time.sleep(0.05)  # the window of a reading: counters are whole microseconds, 1 % of a window of 0.1 ms
        scan = collector.scan()
        if condition(scan): return scan
    raise SystemExit(f"never came: {scan}")
def error():
    try: collector.scan()
    except CollectorError as problem: return f"{problem.reason}: {problem}"
def use(gpus, phase):
    return subprocess.Popen([sys.argv[3], "--gpus", gpus, "--phase", phase])
"""


class Bench:
    """One simulated node, read through one library."""

    def __init__(self, node: SimNode, library: str, run: Callable[..., str], build: Path, *, prologue: str) -> None:
        """`prologue` makes `collector`."""
        self.node = node
        self.library = library
        self._load = str(build / "gpuwaste-load")
        self._run = run
        self._prologue = HELPERS + prologue

    def script(self, text: str) -> list[str]:
        """Run a script and return the lines that it prints; its arguments are the node, the library, the load."""
        arguments = (str(self.node.directory), self.library, self._load)
        return self._run(self._prologue + text, *arguments, env=self.node.env).splitlines()
