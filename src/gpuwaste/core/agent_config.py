"""Section [agent] of gpuwaste.toml: the daemon on each compute node."""

from dataclasses import dataclass

from gpuwaste.core.typed_toml import key


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """The daemon on each compute node."""

    node_name: str = key("", "NodeName of this host in Slurm; empty: the node whose NodeHostname matches.")
    interval_s: float = key(10.0, "Interval between two samples of each GPU.")
    collectors: tuple[str, ...] = key(
        ("nvml", "host"),
        "Collectors to run, in order of preference for GPUs; add amd on nodes with AMD GPUs, intel on those with Intel"
        " GPUs, pcp if pmproxy serves pmdanvidia, dcgm if dcgm-exporter runs on the node, rapl if the agent may"
        " read the energy of CPUs.",
        site=("nvml", "host"),
    )
    state_dir: str = key("/var/lib/gpuwaste/agent", "Directory of raw samples and outbox; a tmpfs on a diskless node.")
    ship_every_s: float = key(900.0, "Interval at which the current hour is sent (60 if diskless).")
    retention_days: int = key(14, "Retention of raw samples.")
    retention_bytes: int = key(256 * 1024**2, "Disk space for raw samples; the oldest day is deleted first.")
    listen: str = key("127.0.0.1:9460", "Address and port of /metrics; empty: no exporter.", site="0.0.0.0:9460")
    tls_cert: str = key("", "PEM certificate for /metrics; empty: plain HTTP.")
    tls_key: str = key("", "PEM key for /metrics.")
    metrics_token_file: str = key("", "File with the bearer token that a scrape must send; empty: none.")
    serve_samples: bool = key(
        default=True,
        text="Serve the samples of a run to the hub (authenticated by munge), to nobody else. Needs listen.",
    )
    jobstats_metrics: bool = key(
        default=False,
        text="Also serve jobstats' metric names; the owner's uid only if metrics_token_file is set.",
    )
    dcgm_url: str = key("http://127.0.0.1:9400/metrics", "URL of dcgm-exporter's metrics, for the collector dcgm.")
    jobs_dir: str = key(
        "/run/gpuwaste-jobs",
        "Directory of root in which prolog and epilog write their files; the agent only reads them.",
    )
    spool_dir: str = key("", "SlurmdSpoolDir of this node; empty: read from slurmd at start.")
    mig_minors: str = key("/proc/driver/nvidia-caps/mig-minors", "The driver's table of MIG device minors.")
    hub_user: str = key("gpuwaste", "User of the hub: acknowledgements with another uid are rejected.")
    ask_slurmctld: bool = key(
        default=True, text="Query slurmctld for a job that neither local sources nor the hub know."
    )
    health_xids: tuple[str, ...] = key(
        ("46", "48", "62", "64", "79", "95", "119", "120", "140"),
        "Xid errors after which a GPU counts as unusable until it is reset; for the prolog's health gate.",
    )
