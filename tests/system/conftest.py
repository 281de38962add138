"""A site of its own for each test: agents and hub with fresh stores on the shared cluster."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.running_site import Site, SiteOptions
from gpuwaste.testing.simnvml import build_native

pytest.register_assert_rewrite("tests.system.submit_scene", "tests.system.rpm_scene")

SiteFactory = Callable[..., Site]
_KEPT = {"runtime", "native"}  # copies that are the same for every site


@pytest.fixture(scope="session")
def native() -> Path:
    """Return the folder with the simulated NVML and the load program."""
    return build_native()


def fresh_site(cluster: LoopbackCluster, native: Path, options: SiteOptions) -> Site:
    """Return a site, not started yet, on a cluster without jobs and without anything of a site before it."""
    cluster.reset()
    old = (cluster.directory / "site").glob("*")
    for path in (*old, *(node.state_dir for node in cluster.nodes.values())):
        if path.name not in _KEPT:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return Site(cluster, native, options)


@pytest.fixture
def make_site(native: Path) -> Iterator[SiteFactory]:
    """Return a function that makes a fresh site on a cluster; its daemons and jobs end with the test."""
    with ExitStack() as stack:

        def make(cluster: LoopbackCluster, options: SiteOptions | None = None) -> Site:
            stack.callback(cluster.reset)
            site = fresh_site(cluster, native, options or SiteOptions(interval_s=1.0, ship_every_s=2.0))
            site.prepare()
            return site

        yield make
