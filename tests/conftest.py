"""Fixtures that start real Slurm clusters on loopback; without root or Slurm their tests are skipped, saying why."""

import gc
import json
import os
import random
import shutil
import signal
import tempfile
from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path

import pytest
from tests import examples
from tests.selection import ANYWHERE, part_of

from gpuwaste.testing import cluster_host, own_host
from gpuwaste.testing.cluster import LoopbackCluster, Variant
from gpuwaste.testing.patience import patient

__all__ = ["examples"]  # its profiles are there before --hypothesis-profile is read
ClusterFactory = Callable[..., LoopbackCluster]
_TESTS = Path(__file__).parent
_WITHOUT_CLUSTER = ("unit", "integration")
_CLUSTER_S = 60  # of a file that tests/durations.json does not know: `make figures-tests` writes it
_CLUSTERS = "GPUWASTE_TEST_CLUSTERS"  # the folder of all workers' clusters, which outlives a worker that is killed


def _private_directory() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="gw", dir=os.environ.get(_CLUSTERS, "/tmp")))  # noqa: S108 short
    directory.chmod(0o755)
    return directory


def _new_cluster(variant: Variant) -> LoopbackCluster:
    reason = cluster_host.missing()
    if reason:
        pytest.skip(reason)
    if variant.constrain_devices and not cluster_host.cgroup_v1_devices():
        pytest.skip("no cgroup v1 controllers devices, freezer and cpuset are mounted")
    if variant.cgroup_v2 and cluster_host.cgroup_v2() is None:
        pytest.skip("no cgroup v2 is mounted")
    return LoopbackCluster(_private_directory(), variant, remove=True)


def _end(cluster: LoopbackCluster) -> None:
    cluster.stop()
    shutil.rmtree(cluster.directory, ignore_errors=True)


def pytest_configure(config: pytest.Config) -> None:
    """Give each xdist worker a host of its own, so that their clusters do not meet; else leave one worker.

    A run in the background of a shell ignores Ctrl-C, and so would the programs that tests interrupt.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    workers = config.getoption("tx", None)
    if not workers or hasattr(config, "workerinput") or os.geteuid() != 0:
        return
    if own_host.available():
        config.option.tx = [one.replace("popen", f"popen//python={own_host.command()}") for one in workers]
    else:
        config.option.tx = workers[:1]
    folder = tempfile.TemporaryDirectory(prefix="gw", dir="/tmp", ignore_cleanup_errors=True)
    Path(folder.name).chmod(0o755)
    os.environ[_CLUSTERS] = folder.name
    config.add_cleanup(folder.cleanup)


@cache
def _says_long(path: Path) -> bool:
    return "mark.long" in path.read_text(encoding="utf-8")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first, so that no worker begins one when the others end; one with clusters is long.

    Each is marked with its part of `make test` or `make test-all` (tests/selection.py); a part with clusters does not
    collect tests/unit and tests/integration, so none may be there.
    """
    for item in items:
        folder = item.path.relative_to(_TESTS).parts[0] if _TESTS in item.path.parents else ""
        marks = {mark.name for mark in item.iter_markers()}
        if folder in _WITHOUT_CLUSTER and "cluster" in marks:
            raise pytest.UsageError(f"{item.nodeid} has a cluster: it belongs into tests/system")
        if folder in ANYWHERE and "cluster" not in marks:
            item.add_marker("anywhere")
        if "long" in marks and not _says_long(item.path):
            raise pytest.UsageError(f"{item.path}: write pytest.mark.long in this file: tools/odd-host looks for it")
        item.add_marker(part_of(folder, marks))
        if limit := item.get_closest_marker("timeout"):  # of a test that hangs, not of one on a busy host
            item.add_marker(pytest.mark.timeout(patient(limit.args[0])), append=False)
    lengths = json.loads((_TESTS / "durations.json").read_text(encoding="utf-8"))
    known = {_TESTS.parent / file: -seconds for file, seconds in lengths.items()}
    clusters = {item.path: -_CLUSTER_S for item in items if item.get_closest_marker("cluster")}
    items.sort(key=lambda item: known.get(item.path, clusters.get(item.path, 0)))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Spare the garbage collector of each worker the hundred thousands of objects that are the tests themselves.

    What a test leaves is looked at seldom too, as a hub does: that is a twentieth of the CPU of tests/unit.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip into a failure where $GPUWASTE_SKIPS names a file of reasons and the skip's is none of them."""
    report = yield
    if report.skipped and isinstance(report.longrepr, tuple) and (file := os.environ.get("GPUWASTE_SKIPS")):
        why = report.longrepr[2]
        lines = Path(file).read_text(encoding="utf-8").splitlines()
        if not any(reason in why for reason in lines if reason and reason[0] != "#"):
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid} was skipped ({why}): {file} does not know this reason"
    return report


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Return a directory of the test's own; with the mark `sockets` one with a short path, wherever TMPDIR is."""
    if request.node.get_closest_marker("sockets") is None:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="gwt", dir="/tmp") as short:
        yield Path(short)


@pytest.fixture(scope="session")
def cluster() -> Iterator[LoopbackCluster]:
    """One default cluster for the whole run, its devices in an order drawn from a printed seed."""
    seed = random.SystemRandom().randrange(1_000_000)
    print(f"cluster: device order drawn from seed {seed}")  # noqa: T201 - pytest shows it when a test fails
    shared = _new_cluster(Variant(seed=seed))
    shared.start()
    yield shared
    _end(shared)


@pytest.fixture
def make_cluster() -> Iterator[ClusterFactory]:
    """Return a function that makes a cluster of a variant, started unless told; stopped and removed after the test."""
    made: list[LoopbackCluster] = []

    def make(variant: Variant | None = None, *, start: bool = True) -> LoopbackCluster:
        cluster = _new_cluster(variant or Variant())
        made.append(cluster)
        if start:
            cluster.start()
        return cluster

    yield make
    for cluster in reversed(made):
        _end(cluster)
