"""The one configuration file, gpuwaste.toml: sections, keys, units and defaults as typed data.

Each key is declared once, below, with its text; the reference page is generated from these declarations. Only the
command line and the daemons' main call `load_config`; everybody else is handed values.
"""

from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Final, get_type_hints

from gpuwaste.core.errors import ConfigError
from gpuwaste.core.typed_toml import key as _key
from gpuwaste.core.typed_toml import nearest, read_table, read_toml
from gpuwaste.core.underuse import UNDER_USE

DEFAULT_PATH: Final = Path("/etc/gpuwaste/gpuwaste.toml")


@dataclass(frozen=True, slots=True)
class CommonConfig:
    """What every program of a site shares."""

    cluster: str = _key("", "Slurm's ClusterName; empty: asked of Slurm at start.")
    hub_url: str = _key("http://127.0.0.1:9461", "Where agents and commands reach the hub.")
    hub_ca: str = _key("", "PEM file of the authority that signed the hub's certificate; empty: the system's.")
    munge_socket: str = _key("", "munged's socket; empty: munge's default.")
    slurm_conf: str = _key("", "slurm.conf for the Slurm commands; empty: Slurm's default.")
    slurm_timeout_s: float = _key(20.0, "Seconds after which a Slurm command is given up.")
    slurmrestd_url: str = _key("", "slurmrestd for history, http(s)://HOST:PORT or unix:/PATH; empty: the commands.")
    slurmrestd_token_file: str = _key("", "File with the JWT that slurmrestd asks for, closed to others.")
    models_dir: str = _key(
        "/var/lib/gpuwaste/models", "Registry of model bundles; the link champion names the one in use."
    )
    run_dir: str = _key("/run/gpuwaste", "Directory of the services' sockets and of the agent's health file.")
    token_file: str = _key("", "File with this node's or user's token, at a site without munge; empty: munge is used.")


@dataclass(frozen=True, slots=True)
class SlurmClientConfig:
    """How history and single jobs are read from Slurm."""

    client: str = _key(
        "",
        "commands, slurmrestd or pyslurm: who reads accounting and single jobs; the commands do all else."
        " Empty: commands, and slurmrestd for single jobs where [common] slurmrestd_url is set.",
    )


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """The daemon on each compute node."""

    node_name: str = _key("", "Slurm's NodeName of this host; empty: the one NodeHostname that matches.")
    interval_s: float = _key(10.0, "Seconds between two samples of each GPU.")
    collectors: tuple[str, ...] = _key(
        ("nvml", "host"), "Collectors to run, in order of preference for GPUs; add pcp where pmproxy serves pmdanvidia."
    )
    state_dir: str = _key("/var/lib/gpuwaste/agent", "Raw samples and outbox; a tmpfs on a diskless node.")
    diskless: bool = _key(default=False, text="State is lost at a reboot: ship rows every minute.")
    ship_every_s: float = _key(900.0, "Seconds between two shipments of an open hour (60 where diskless).")
    retention_days: int = _key(14, "Days for which raw samples are kept.")
    retention_bytes: int = _key(256 * 1024**2, "Bytes that raw samples may take; the oldest day goes first.")
    listen: str = _key("127.0.0.1:9460", "Address and port of /metrics; empty: no exporter.")
    tls_cert: str = _key("", "PEM certificate for /metrics; empty: plain HTTP.")
    tls_key: str = _key("", "PEM key for /metrics.")
    metrics_token_file: str = _key("", "File with the bearer token that a scrape must show; empty: none.")
    jobstats_metrics: bool = _key(
        default=False,
        text="Serve jobstats' metric names as well; the owner's uid only where metrics_token_file is set.",
    )
    pcp_url: str = _key("http://127.0.0.1:44322", "pmproxy's REST address.")
    jobs_dir: str = _key(
        "/run/gpuwaste-jobs", "Directory of root in which prolog and epilog leave their files; the agent only reads."
    )
    spool_dir: str = _key("", "slurmd's SlurmdSpoolDir of this node; empty: asked of slurmd at start.")
    cgroup_root: str = _key("/sys/fs/cgroup", "Where cgroups are mounted.")
    mig_minors: str = _key("/proc/driver/nvidia-caps/mig-minors", "The driver's table of MIG device minors.")
    hub_user: str = _key("gpuwaste", "User whose uid the hub's acknowledgements must carry.")
    ask_slurmctld: bool = _key(default=True, text="Ask slurmctld where neither local facts nor the hub know a job.")
    ask_jitter_s: float = _key(30.0, "Longest random wait before such a question.")
    health_xids: tuple[str, ...] = _key(
        ("46", "48", "62", "64", "79", "95", "119", "120", "140"),
        "Xid errors after which a GPU is called unusable until it was reset; for the prolog's health gate.",
    )


@dataclass(frozen=True, slots=True)
class HubConfig:
    """The hub."""

    listen: str = _key("127.0.0.1:9461", "Address and port of the API.")
    socket: str = _key("", "Unix socket for local users (identity by peer credentials); empty: none.")
    tls_cert: str = _key("", "PEM certificate of the API; empty: plain HTTP.")
    tls_key: str = _key("", "PEM key of the API.")
    state_dir: str = _key("/var/lib/gpuwaste/hub", "The hub's store.")
    agent_user: str = _key("gpuwaste", "User whose uid agents' credentials must carry.")
    check_origin: bool = _key(
        default=True, text="Refuse hours whose credential was made on another host than the node."
    )
    node_tokens_file: str = _key("", "File with lines NODE TOKEN, for agents at a site without munge.")
    sacct_every_s: float = _key(60.0, "Seconds between two imports from accounting.")
    sacct_overlap_s: float = _key(3600.0, "Seconds of accounting read again each time, for late rows.")
    sacct_first_days: int = _key(30, "Days of accounting read by the very first import.")
    map_min_interval_s: float = _key(2.0, "Shortest time between two questions to slurmctld.")
    memory_mb: int = _key(
        512, "MB of memory for the store's work and cache, the programs' own 300 MB beside it; 0: most of the host's."
    )
    rollup_days: int = _key(
        3, "Days after which the hours of runs that have ended are added up, one row for each GPU and day; 0: never."
    )
    unaccounted_days: int = _key(
        90,
        "Days for which hours of runs that accounting does not have are taken and kept; 0: for good, however many.",
    )
    verdict_days: int = _key(400, "Days for which the audit's verdicts are kept.")
    staff_groups: tuple[str, ...] = _key((), "Unix groups whose members may read every job.")
    metrics_accounts: bool = _key(
        default=False, text="Tell accounts apart in the waste that /metrics tells; whoever reaches the port reads it."
    )
    max_body_bytes: int = _key(1024 * 1024, "Largest request body.")
    low_below_pct: float = _key(33.0, "A GPU-second below this utilization is low, from it on moderate.")
    high_above_pct: float = _key(66.0, "A GPU-second above this utilization is high.")
    underused_below_pct: float = _key(UNDER_USE.below_pct, "A device whose mean stays below this is under-used.")
    underused_min_s: float = _key(UNDER_USE.min_s, "Shortest run to which the under-used rule applies.")
    min_coverage: float = _key(
        UNDER_USE.min_coverage, "Share of the allocation that must be known before a job is called under-used."
    )
    finding_min_s: float = _key(
        600.0, "Seconds for which a waste must last before a finding names it; a hang three times, a job's run a tenth."
    )
    interactive_grace_s: float = _key(1800.0, "Idle time of an interactive job that is exempt.")
    memory_resident_ratio: float = _key(0.5, "Share of GPU memory from which an idle GPU counts as memory-resident.")


@dataclass(frozen=True, slots=True)
class AdvisorConfig:
    """The advisor beside each slurmctld."""

    socket: str = _key("/run/gpuwaste/advisor.sock", "Unix socket on which submit plugins ask.")
    state_dir: str = _key("/var/lib/gpuwaste/advisor", "State of the history, budgets, verdicts not yet sent.")
    policies_dir: str = _key("/etc/gpuwaste/policies.d", "Policies, one TOML file each; none there: shadow for all.")
    slurm_user: str = _key("", "SlurmUser, who may ask beside root; empty: asked of Slurm at start.")
    listen: str = _key("127.0.0.1:9462", "Address and port of /metrics; empty: no exporter.")
    tls_cert: str = _key("", "PEM certificate for /metrics; empty: plain HTTP.")
    tls_key: str = _key("", "PEM key for /metrics.")
    history_every_s: float = _key(5.0, "Seconds between two questions to the hub for what happened to jobs.")
    stale_s: float = _key(
        3600.0, "Seconds without word from the hub after which nothing is said, and after which nobody is rejected."
    )
    ship_every_s: float = _key(2.0, "Seconds between two shipments of verdicts to the hub.")
    max_queue: int = _key(64, "Requests that may wait; above it the answer is pass, at once.")


@dataclass(frozen=True, slots=True)
class PluginConfig:
    """The submit plugins, which read these keys and [advisor] socket: one KEY = INTEGER or "TEXT" a line."""

    deadline_us: int = _key(5000, "Microseconds for the whole exchange with the advisor.")
    kill_switch: str = _key("/etc/gpuwaste/disable", "While this file is there the plugins ask nothing.")
    breaker_misses: int = _key(3, "Misses in a row after which the plugins stop asking for a while.")
    breaker_first_ms: int = _key(1000, "Milliseconds until the first probe after that; doubled at each failed probe.")
    breaker_max_ms: int = _key(30000, "Longest wait between two probes.")
    stale_s: int = _key(7200, "A reply that rests on older history than this is taken for pass.")
    script_bytes: int = _key(32768, "Bytes of a job's script that are sent; the whole of it is hashed.")
    advisor_user: str = _key("gpuwaste", "User to whom the process behind the socket must belong, beside root.")


@dataclass(frozen=True, slots=True)
class NotifyConfig:
    """Mail that the hub sends: digests of wasted GPU-time to users, the weekly list to staff; reports in END mails."""

    smtp_host: str = _key("", "Mail server; empty: the hub writes to nobody.")
    smtp_port: int = _key(25, "Its port.")
    smtp_tls: str = _key("none", "none, starttls, or tls from the first byte.")
    smtp_ca: str = _key("", "PEM file of the authority that signed the server's certificate; empty: the system's.")
    smtp_user: str = _key("", "Name to log in with; empty: no login. Needs TLS.")
    smtp_password_file: str = _key("", "File with the password, closed to others.")
    smtp_timeout_s: float = _key(20.0, "Seconds for each step of an exchange with the mail server.")
    sender: str = _key("", "Address that the mail comes from.")
    reply_to: str = _key("", "Address for answers; empty: the sender's.")
    dry_run: bool = _key(default=True, text="Decide and note whom to write to, and send nothing.")
    every: str = _key("week", "How often a digest may go out: week or day.")
    weekday: str = _key("monday", "Day of the weekly digest and of the staff's list.")
    at: str = _key("08:00", "Time of the day at which a period ends.")
    zone: str = _key("", "Time zone of at and quiet_hours, such as Europe/Berlin; empty: the host's.")
    quiet_hours: str = _key("", "Hours in which nothing is sent, such as 20-7; empty: none.")
    settle_s: float = _key(3600.0, "Seconds after a period's end before it is judged: what is on its way may arrive.")
    cooldown_days: float = _key(6.0, "Days after a digest during which its user gets no other.")
    min_wasted_gpu_h: float = _key(5.0, "GPU-hours wasted in the period from which a user is told.")
    min_wasted_share: float = _key(0.25, "Share of a user's GPU-time that must be wasted, 0..1.")
    min_coverage: float = _key(0.8, "Share that must be known of a job, and of a user's whole GPU-time, 0..1.")
    jobs: int = _key(5, "Jobs named in a digest, the largest waste first.")
    max_mails: int = _key(100, "Digests in one period; the users with the largest waste come first.")
    address: str = _key("", "Pattern of addresses, such as {user}@example.org.")
    address_file: str = _key("", "File with lines USER ADDRESS, asked first; the address - stands for nobody.")
    address_command: tuple[str, ...] = _key(
        (), "Command whose output holds the address, such as getent passwd {user}; asked before the pattern."
    )
    opt_out_file: str = _key("", "File with names of users who get no digest, one a line, beside those who said so.")
    staff: tuple[str, ...] = _key((), "Addresses that get the weekly list of who wasted most.")
    staff_users: int = _key(20, "Users in that list.")
    text: str = _key("", "Words at the end of each mail, such as where to get help.")
    audit_days: int = _key(400, "Days for which it is kept who was told, who was not, and why.")
    mail_program: str = _key("/usr/bin/mail", "The mail program behind the MailProg wrapper gpuwaste-mail.")
    mail_report_s: int = _key(10, "Seconds that the wrapper waits for a job's report; 0: it adds none.")


@dataclass(frozen=True, slots=True)
class Config:
    """The whole file."""

    common: CommonConfig = field(default_factory=CommonConfig)
    slurm: SlurmClientConfig = field(default_factory=SlurmClientConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)
    hub: HubConfig = field(default_factory=HubConfig)
    advisor: AdvisorConfig = field(default_factory=AdvisorConfig)
    plugin: PluginConfig = field(default_factory=PluginConfig)
    notify: NotifyConfig = field(default_factory=NotifyConfig)


def load_config(path: Path | None = None) -> Config:
    """Read `path`, or the default path where it exists, or the defaults.

    Raises ConfigError naming the file, the key and the nearest known key.
    """
    if path is None:
        if not DEFAULT_PATH.exists():
            return Config()
        path = DEFAULT_PATH
    return config_from_dict(read_toml(path), str(path))


def config_from_dict(data: dict[str, Any], where: str) -> Config:
    """Build the configuration from parsed TOML; `where` names it in errors. Raises ConfigError."""
    known = {f.name for f in fields(Config)}
    for name in data:
        if name not in known:
            raise ConfigError(f"{where}: unknown section [{name}]{nearest(name, known)}")
    hints = get_type_hints(Config)
    sections = {name: read_table(hints[name], data.get(name, {}), f"{where}: [{name}]") for name in known}
    return Config(**sections)


def describe_config() -> list[tuple[str, str, str, Any, str]]:
    """Return (section, key, type, default, text) of every key, for the generated reference."""
    rows = []
    for section in fields(Config):
        kind = get_type_hints(Config)[section.name]
        assert is_dataclass(kind)  # noqa: S101 narrows the type; Config holds sections only
        hints = get_type_hints(kind)
        for key in fields(kind):
            name = getattr(hints[key.name], "__name__", str(hints[key.name]))
            rows.append((section.name, key.name, name, key.default, key.metadata["text"]))
    return rows
