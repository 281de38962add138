"""Sections [hub] and [web] of gpuwaste.toml: the central daemon, and its pages."""

from dataclasses import dataclass

from gpuwaste.core.typed_toml import key
from gpuwaste.core.underuse import UNDER_USE


@dataclass(frozen=True)
class LedgerThresholds:
    """By what the ledger judges runs: percent, seconds and ratios, by the end of each name."""

    low_below_pct: float = key(33.0, "A GPU-second below this utilization is low, otherwise moderate or high.")
    high_above_pct: float = key(66.0, "A GPU-second above this utilization is high.")
    underused_below_pct: float = key(UNDER_USE.below_pct, "A GPU with a mean utilization below this is under-used.")
    underused_min_s: float = key(UNDER_USE.min_s, "Minimum duration of a run for the under-used rule.")
    min_coverage: float = key(
        UNDER_USE.min_coverage, "Minimum coverage of a run for the under-used rule and for findings."
    )
    finding_min_s: float = key(
        600.0, "Minimum duration of waste for a finding; three times as long for a hang, a tenth for an entire run."
    )
    interactive_grace_s: float = key(1800.0, "Idle time per GPU of an interactive job that is exempt.")
    memory_resident_ratio: float = key(
        0.5, "An idle GPU with at least this share of its memory in use counts as memory-resident."
    )


@dataclass(frozen=True)
class HubServiceConfig:
    """What the daemon serves, reads and keeps."""

    listen: str = key("127.0.0.1:9461", "Address and port of the API.", site="0.0.0.0:9461")
    socket: str = key("", "Unix socket for local users (identity by peer credentials); empty: none.")
    tls_cert: str = key("", "PEM certificate of the API; empty: plain HTTP.")
    tls_key: str = key("", "PEM key of the API.")
    state_dir: str = key("/var/lib/gpuwaste/hub", "Directory of the hub's store.")
    store: str = key(
        "file",
        "file: the store is one file in state_dir. lake: it is a DuckLake, a catalog in PostgreSQL with Parquet files;"
        " one hub at a time writes to it.",
    )
    lake_catalog: str = key(
        "",
        "PostgreSQL database of the lake's catalog, as libpq's keywords: host=/run/postgresql dbname=gpuwaste."
        " A password goes into libpq's passfile.",
    )
    lake_data: str = key(
        "",
        "Directory of the lake's Parquet files, accessible only to the hub's user; or a folder in S3: s3://BUCKET/FOLDER.",
    )
    lake_s3_endpoint: str = key(
        "", "URL of the S3 service, such as https://s3.example.org:9000; empty: AWS in lake_s3_region."
    )
    lake_s3_region: str = key("us-east-1", "Region of the bucket; many services other than AWS ignore it.")
    lake_s3_keys_file: str = key(
        "", "File with the bucket's keys, section [default] in the format of AWS's tools; not readable by other users."
    )
    lake_s3_ca_file: str = key(
        "", "PEM file of the CA that signed the S3 service's certificate; empty: the system's CAs."
    )
    agent_user: str = key("gpuwaste", "User of the agents: rows from another uid are rejected.")
    actor_user: str = key(
        "gpuwaste-actor", "User of the actor; only this user gets actions. If the user does not exist, nobody gets any."
    )
    check_origin: bool = key(
        default=True, text="Reject hour rows whose credential was created on another host than the node."
    )
    node_tokens_file: str = key("", "File with lines NODE TOKEN, for agents at a site without munge.")
    agent_url: str = key(
        "",
        "URL at which agents answer for a job's curves, such as http://{address}:9460; {address} is Slurm's NodeAddr."
        " Empty: agents are not queried.",
    )
    prometheus_url: str = key(
        "", "URL of the Prometheus that scrapes the agents, for curves that the agent does not have; empty: not used."
    )
    sacct_every_s: float = key(60.0, "Interval between two imports from accounting.")
    sacct_overlap_s: float = key(3600.0, "Overlap of two imports, for rows that slurmdbd gets late.")
    sacct_first_days: int = key(30, "Days of accounting that the first import reads.", site=30)
    map_min_interval_s: float = key(2.0, "Minimum interval between two queries to slurmctld.")
    memory_mb: int = key(
        512,
        "MB of memory for DuckDB, in addition to 300 to 800 MB for the program itself; 0: most of the host's memory.",
    )
    rollup_days: int = key(
        3, "Days after which the hour rows of ended runs are merged into one row per GPU and day; 0: never."
    )
    unaccounted_days: int = key(
        90,
        "Days for which hour rows of runs that are missing in accounting are accepted and kept; 0: no limit.",
    )
    verdict_days: int = key(400, "Retention of verdicts.")
    outlets_dir: str = key(
        "/etc/gpuwaste/outlets.d", "Directory of outlets for events, one TOML file each; without any, none are sent."
    )
    rescore: bool = key(
        default=False,
        text="Predict running jobs again at their start, 10 minutes later and before their time limit.",
    )
    inlets_dir: str = key(
        "/etc/gpuwaste/inlets.d", "Directory of inlets for events of other systems, one TOML file each."
    )
    rules_dir: str = key(
        "/etc/gpuwaste/rules.d", "Directory of rules, one TOML file each; without any, gpuwaste takes no action."
    )
    keep_hours_per_week: float = key(
        24.0,
        "Hours for which one person may keep jobs (`gpuwaste keep`) in 7 days, over all runs; 0: none.",
    )
    keep_max_hours: float = key(12.0, "Maximum duration of one keep, hours; for operators too.")
    keeps_per_week: int = key(20, "Maximum number of keeps of one person in 7 days.")
    idle_after_s: float = key(
        1800.0, "Idle time after which `gpuwaste idle` and /v1/jobs/ID/idleness answer yes; a request may name another."
    )
    staff_groups: tuple[str, ...] = key((), "Unix groups whose members may see all jobs.", site=("hpcstaff",))
    user_names_file: str = key(
        "",
        "CSV file (cluster,user,person) with the users of imported clusters who have another name on the hub's host;"
        " gpuwaste history import reads it. Empty: a name is the same person in every cluster.",
    )
    metrics_accounts: bool = key(
        default=False, text="Waste per account in /metrics; anybody who can connect to the port can read it."
    )


@dataclass(frozen=True)
class HubConfig(LedgerThresholds, HubServiceConfig):  # a dataclass has the fields of its last base first
    """The daemon in the middle: accounting, rows of the agents, reports."""


@dataclass(frozen=True, slots=True)
class WebConfig:
    """Pages of the hub in a browser, and how users sign in."""

    enabled: bool = key(default=True, text="Serve pages, and links to sign in to them.")
    url: str = key(
        "", "URL of the pages in a browser, https://HOST[:PORT], without a path; empty: the address of [hub] listen."
    )
    proxy_users: tuple[str, ...] = key(
        (),
        "Users of reverse proxies, such as www-data, that connect to [hub] socket and name the user in proxy_header;"
        " users must not control any other process of theirs.",
    )
    proxy_header: str = key("X-Remote-User", "Header in which such a proxy names the user who has signed in to it.")
    idle_h: float = key(2.0, "Maximum time between two requests of a session, hours.")
