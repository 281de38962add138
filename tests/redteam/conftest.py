"""A site under attack: a real slurmctld with the C plugin, the advisor with a policy that refuses, and the hub."""

from collections.abc import Iterator

import pytest
from tests.conftest import _end, _new_cluster
from tests.system.conftest import native
from tests.system.submit_scene import PLUGIN, POLICY, Scene

from gpuwaste.testing.cluster import Variant
from gpuwaste.testing.running_site import Site, SiteOptions
from gpuwaste.testing.simnvml import build_native
from gpuwaste.testing.submit_plugins import build_plugins

__all__ = ["native"]
PATIENT = {**PLUGIN, "deadline_us": 1_000_000}
"""A host that others use too needs longer than a site's 5 ms; an attack that holds the advisor takes seconds."""


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    """Return a site whose users' jobs named `doomed` have failed and are refused unchanged."""
    cluster = _new_cluster(Variant(job_submit="gpuwaste", plugin_dir=str(build_plugins())))
    try:
        cluster.start()
        options = SiteOptions(plugin=PATIENT, policies={"doomed.toml": POLICY}, sacct_every_s=1.0)
        site = Site(cluster, build_native(), options)
        site.prepare()
        site.start_hub()
        site.start_advisor()
        scene = Scene(cluster, site)
        scene.teach()
        yield scene
        site.stop()
    finally:
        _end(cluster)
