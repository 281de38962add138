"""What a partition gives a job that did not say."""

from gpuwaste.slurm.site.cluster_model import Partition, SlurmConfig
from gpuwaste.slurm.site.site_defaults import NO_DEFAULTS, SiteDefaults
from gpuwaste.slurm.site.site_fields import parse_partitions
from gpuwaste.slurm.submit.job_request import JobRequest

SITE = SiteDefaults.of(
    [Partition("long", max_time_s=9000), Partition("gpu", default=True, max_time_s=7200, default_time_s=600)]
)
TEXT = (
    "PartitionName=gpu\n   AllocNodes=ALL Default=YES QoS=N/A\n   DefaultTime=00:10:00 DisableRootJobs=NO\n"
    "   MaxNodes=UNLIMITED MaxTime=3-00:00:00 MinNodes=0\n   Nodes=gpu1\n"
    "   PriorityTier=1 OverSubscribe=NO\n   State=UP\n"
)


def test_the_default_partition_and_its_time_are_filled_in() -> None:
    """Nothing said: the default partition with its default time; a named partition without one gives its longest."""
    assert SITE.completed(JobRequest("a", 0)) == JobRequest("a", 0, partition="gpu", time_limit_s=600)
    assert SITE.completed(JobRequest("a", 0, partition="long,gpu")).time_limit_s == 9000


def test_what_was_said_stays_and_what_is_unknown_stays_unknown() -> None:
    """A limit is kept; a partition that Slurm does not know, or no partitions at all, add nothing."""
    asked = JobRequest("a", 0, partition="gpu", time_limit_s=60)
    assert SITE.completed(asked) == asked
    assert SITE.completed(JobRequest("a", 0, partition="new")).time_limit_s is None
    assert NO_DEFAULTS.completed(JobRequest("a", 0)) == JobRequest("a", 0)


def test_whole_nodes_come_from_the_partition_too() -> None:
    """OverSubscribe=EXCLUSIVE of a partition named, or of the default one; select/linear makes every one so."""
    site = SiteDefaults.of([Partition("all", whole_nodes=True, default=True), Partition("gpu")])
    asked = {
        name: site.completed(JobRequest("a", 0, partition=name)).whole_node for name in ("", "all", "gpu", "gpu,all")
    }
    assert asked == {"": True, "all": True, "gpu": None, "gpu,all": True}
    assert site.completed(JobRequest("a", 0, partition="gpu", whole_node=True)).whole_node
    linear = SiteDefaults.of([Partition("gpu")], SlurmConfig({"SelectType": "select/linear"}))
    assert linear.completed(JobRequest("a", 0, partition="gpu", whole_node=False)).whole_node


def test_scontrol_prints_the_default_time() -> None:
    """DefaultTime of `scontrol show partition` is read."""
    (partition,) = parse_partitions(TEXT)
    assert (partition.default_time_s, partition.max_time_s) == (600, 3 * 86400)
