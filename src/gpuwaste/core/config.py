"""The configuration, gpuwaste.toml with its drop-ins: sections, keys, units and defaults as typed data.

Each key is declared once, below, with its text; the reference page is generated from these declarations. Only the
command line and the daemons' main call `load_config`; everybody else is handed values.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Final, get_type_hints

from gpuwaste.core.config_files import ConfigLayer, merged, read_layers, readable_layers
from gpuwaste.core.credentials import with_credentials
from gpuwaste.core.energy_config import EnergyConfig
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.typed_toml import key as _key
from gpuwaste.core.typed_toml import nearest, read_keys
from gpuwaste.core.underuse import UNDER_USE

DEFAULT_PATH: Final = Path("/etc/gpuwaste/gpuwaste.toml")


@dataclass(frozen=True, slots=True)
class CommonConfig:
    """What every program of a site shares."""

    cluster: str = _key("", "Slurm's ClusterName; empty: read from Slurm at start.")
    hub_url: str = _key(
        "http://127.0.0.1:9461",
        "URL of the hub, for agents, advisor and commands; of each host that a hub may run on, separated by spaces.",
    )
    hub_ca: str = _key("", "PEM file of the CA that signed the hub's certificate; empty: the system's CAs.")
    munge_socket: str = _key("", "Socket of munged; empty: munge's default.")
    slurm_conf: str = _key("", "slurm.conf for the Slurm commands; empty: Slurm's default.")
    slurm_timeout_s: float = _key(
        20.0, "Timeout of a Slurm command; for the actor 25 at most, so that a command ends before its lease does."
    )
    slurmrestd_url: str = _key(
        "", "URL of slurmrestd, http(s)://HOST:PORT or unix:/PATH; empty: slurmrestd is not used."
    )
    slurmrestd_token_file: str = _key("", "File with the JWT for slurmrestd; not readable by other users.")
    models_dir: str = _key(
        "/var/lib/gpuwaste/models", "Registry of model bundles; the link champion points to the one in use."
    )
    run_dir: str = _key("/run/gpuwaste", "Directory of the daemons' sockets and of the agent's health file.")
    token_file: str = _key(
        "", "File with the token of this node or user, at a site without munge; empty: munge is used."
    )


@dataclass(frozen=True, slots=True)
class SlurmClientConfig:
    """How history and single jobs are read from Slurm."""

    client: str = _key(
        "",
        "commands, slurmrestd or pyslurm: reads accounting and single jobs; everything else is read with commands."
        " Empty: commands, with slurmrestd for single jobs if [common] slurmrestd_url is set.",
    )


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """The daemon on each compute node."""

    node_name: str = _key("", "NodeName of this host in Slurm; empty: the node whose NodeHostname matches.")
    interval_s: float = _key(10.0, "Interval between two samples of each GPU.")
    collectors: tuple[str, ...] = _key(
        ("nvml", "host"),
        "Collectors to run, in order of preference for GPUs; add amd on nodes with AMD GPUs, intel on those with Intel"
        " GPUs, pcp if pmproxy serves pmdanvidia, dcgm if dcgm-exporter runs on the node, rapl if the agent may"
        " read the energy of CPUs.",
    )
    state_dir: str = _key("/var/lib/gpuwaste/agent", "Directory of raw samples and outbox; a tmpfs on a diskless node.")
    diskless: bool = _key(default=False, text="State is lost at a reboot: send rows every minute.")
    ship_every_s: float = _key(900.0, "Interval at which the current hour is sent (60 if diskless).")
    retention_days: int = _key(14, "Retention of raw samples.")
    retention_bytes: int = _key(256 * 1024**2, "Disk space for raw samples; the oldest day is deleted first.")
    listen: str = _key("127.0.0.1:9460", "Address and port of /metrics; empty: no exporter.")
    tls_cert: str = _key("", "PEM certificate for /metrics; empty: plain HTTP.")
    tls_key: str = _key("", "PEM key for /metrics.")
    metrics_token_file: str = _key("", "File with the bearer token that a scrape must send; empty: none.")
    serve_samples: bool = _key(
        default=True,
        text="Also answer the hub, proven by munge, with the samples of a run; never anybody else. Needs listen.",
    )
    jobstats_metrics: bool = _key(
        default=False,
        text="Also serve jobstats' metric names; the owner's uid only if metrics_token_file is set.",
    )
    pcp_url: str = _key("http://127.0.0.1:44322", "URL of pmproxy's REST API.")
    dcgm_url: str = _key("http://127.0.0.1:9400/metrics", "URL of dcgm-exporter's metrics, for the collector dcgm.")
    dcgm_any_host: bool = _key(
        default=False, text="Allow a dcgm_url that is not on the loopback interface: its answers are not proven."
    )
    jobs_dir: str = _key(
        "/run/gpuwaste-jobs",
        "Directory of root in which prolog and epilog write their files; the agent only reads them.",
    )
    spool_dir: str = _key("", "SlurmdSpoolDir of this node; empty: read from slurmd at start.")
    cgroup_root: str = _key("/sys/fs/cgroup", "Mount point of the cgroup file systems.")
    mig_minors: str = _key("/proc/driver/nvidia-caps/mig-minors", "The driver's table of MIG device minors.")
    hub_user: str = _key("gpuwaste", "User of the hub: acknowledgements with another uid are rejected.")
    ask_slurmctld: bool = _key(
        default=True, text="Ask slurmctld for a job that neither local sources nor the hub know."
    )
    ask_jitter_s: float = _key(30.0, "Maximum random delay before such a query.")
    health_xids: tuple[str, ...] = _key(
        ("46", "48", "62", "64", "79", "95", "119", "120", "140"),
        "Xid errors after which a GPU counts as unusable until it is reset; for the prolog's health gate.",
    )


@dataclass(frozen=True, slots=True)
class HubConfig:
    """The daemon in the middle: accounting, rows of the agents, reports."""

    listen: str = _key("127.0.0.1:9461", "Address and port of the API.")
    socket: str = _key("", "Unix socket for local users (identity by peer credentials); empty: none.")
    tls_cert: str = _key("", "PEM certificate of the API; empty: plain HTTP.")
    tls_key: str = _key("", "PEM key of the API.")
    state_dir: str = _key("/var/lib/gpuwaste/hub", "Directory of the hub's store.")
    store: str = _key(
        "file",
        "file: the store is one file in state_dir. lake: it is a DuckLake, a catalog in PostgreSQL with Parquet files;"
        " one hub at a time writes to it.",
    )
    lake_catalog: str = _key(
        "",
        "PostgreSQL database of the lake's catalog, as libpq's keywords: host=/run/postgresql dbname=gpuwaste."
        " A password goes into libpq's passfile.",
    )
    lake_data: str = _key(
        "", "Directory of the lake's Parquet files, of the hub's user alone; or a folder in S3: s3://BUCKET/FOLDER."
    )
    lake_s3_endpoint: str = _key(
        "", "The S3 service, such as https://s3.example.org:9000; empty: AWS's of lake_s3_region."
    )
    lake_s3_region: str = _key("us-east-1", "Region of the bucket; many services other than AWS ignore it.")
    lake_s3_keys_file: str = _key(
        "", "File with the bucket's keys as AWS's tools have them, section [default]; not readable by other users."
    )
    lake_s3_ca_file: str = _key("", "PEM certificates that the S3 service's is checked against; empty: the host's.")
    agent_user: str = _key("gpuwaste", "User of the agents: rows from another uid are rejected.")
    actor_user: str = _key(
        "gpuwaste-actor", "User of the actor, the only one that gets actions to take; no such user: nobody gets any."
    )
    check_origin: bool = _key(
        default=True, text="Reject hour rows whose credential was created on another host than the node."
    )
    node_tokens_file: str = _key("", "File with lines NODE TOKEN, for agents at a site without munge.")
    agent_url: str = _key(
        "",
        "URL at which agents answer for a job's curves, such as http://{address}:9460; {address} is Slurm's NodeAddr."
        " Empty: agents are not asked.",
    )
    prometheus_url: str = _key(
        "", "URL of the Prometheus that scrapes the agents, for curves that the agent does not have; empty: not used."
    )
    sacct_every_s: float = _key(60.0, "Interval between two imports from accounting.")
    sacct_overlap_s: float = _key(3600.0, "Overlap of two imports, for rows that slurmdbd gets late.")
    sacct_first_days: int = _key(30, "Days of accounting that the first import reads.")
    map_min_interval_s: float = _key(2.0, "Minimum interval between two queries to slurmctld.")
    memory_mb: int = _key(
        512, "MB of memory for DuckDB, beside 300 to 800 MB for the program itself; 0: most of the host's memory."
    )
    rollup_days: int = _key(
        3, "Days after which the hour rows of ended runs are merged into one row per GPU and day; 0: never."
    )
    unaccounted_days: int = _key(
        90,
        "Days for which hour rows of runs that are missing in accounting are accepted and kept; 0: no limit.",
    )
    verdict_days: int = _key(400, "Retention of verdicts.")
    outlets_dir: str = _key(
        "/etc/gpuwaste/outlets.d", "Directory of outlets for events, one TOML file each; without any, none are sent."
    )
    rescore: bool = _key(
        default=False,
        text="Predict running jobs again at their start, 10 minutes later and before their time limit.",
    )
    limit_near_s: float = _key(
        2400.0,
        "Time before its limit at which a job is checked for reaching it; at most half of the limit. Needs rescore.",
    )
    limit_near_p: float = _key(
        0.5, "A job with a smaller probability of reaching its limit gives no event and no mail, 0..1."
    )
    inlets_dir: str = _key(
        "/etc/gpuwaste/inlets.d", "Directory of inlets for events of other systems, one TOML file each."
    )
    rules_dir: str = _key(
        "/etc/gpuwaste/rules.d", "Directory of rules, one TOML file each; without any, nothing is ever done."
    )
    rules_every_s: float = _key(60.0, "Interval between two evaluations of the rules, at least 1.")
    staff_groups: tuple[str, ...] = _key((), "Unix groups whose members may see all jobs.")
    user_names_file: str = _key(
        "",
        "CSV file (cluster,user,person) with the users of imported clusters who have another name on the hub's host;"
        " gpuwaste history import reads it. Empty: a name is the same person in every cluster.",
    )
    metrics_accounts: bool = _key(
        default=False, text="Waste per account in /metrics; anybody who can connect to the port can read it."
    )
    max_body_bytes: int = _key(1024 * 1024, "Maximum size of a request body.")
    low_below_pct: float = _key(33.0, "A GPU-second below this utilization is low, otherwise moderate or high.")
    high_above_pct: float = _key(66.0, "A GPU-second above this utilization is high.")
    underused_below_pct: float = _key(UNDER_USE.below_pct, "A GPU with a mean utilization below this is under-used.")
    underused_min_s: float = _key(UNDER_USE.min_s, "Minimum duration of a run for the under-used rule.")
    min_coverage: float = _key(
        UNDER_USE.min_coverage, "Minimum coverage of a run for the under-used rule and for findings."
    )
    finding_min_s: float = _key(
        600.0, "Minimum duration of waste for a finding; three times as long for a hang, a tenth of it for a whole run."
    )
    interactive_grace_s: float = _key(1800.0, "Idle time per GPU of an interactive job that is exempt.")
    memory_resident_ratio: float = _key(
        0.5, "An idle GPU with at least this share of its memory in use counts as memory-resident."
    )


@dataclass(frozen=True, slots=True)
class AdvisorConfig:
    """The daemon on each slurmctld host, which answers the submit plugins."""

    socket: str = _key("/run/gpuwaste/advisor.sock", "Unix socket for the submit plugins.")
    state_dir: str = _key(
        "/var/lib/gpuwaste/advisor", "Directory of job history, budgets and verdicts that are not sent yet."
    )
    policies_dir: str = _key(
        "/etc/gpuwaste/policies.d",
        "Directory of policies, one TOML file each; without any, all jobs are in shadow mode.",
    )
    slurm_user: str = _key(
        "", "SlurmUser, the only user besides root that gets answers; empty: read from Slurm at start."
    )
    listen: str = _key("127.0.0.1:9462", "Address and port of /metrics; empty: no exporter.")
    tls_cert: str = _key("", "PEM certificate for /metrics; empty: plain HTTP.")
    tls_key: str = _key("", "PEM key for /metrics.")
    history_every_s: float = _key(5.0, "Interval between two queries for new job events to the hub.")
    stale_s: float = _key(3600.0, "Maximum age of the job history; beyond it jobs are accepted without advice.")
    ship_every_s: float = _key(2.0, "Interval at which verdicts are sent to the hub.")
    max_queue: int = _key(64, "Maximum length of the request queue; further requests are answered with pass at once.")
    shadow_cpu_pct: float = _key(
        5.0, "CPU that models on trial may take, percent of one core on average; 0: they are not scored."
    )


@dataclass(frozen=True, slots=True)
class ModelsConfig:
    """How models renew themselves: what a model on trial has to show before it replaces the one in use."""

    renew: bool = _key(
        default=False,
        text="Let the hub promote a model on trial that was better, and roll back one that is worse than the baseline.",
    )
    targets: tuple[str, ...] = _key(("failure",), "Targets that decide, such as failure, timeout, gpu_underused.")
    margin: float = _key(0.005, "Average precision by which a model on trial must be better in each of them.")
    confidence: float = _key(0.9, "Share of the bootstrap draws of users in which it must be better by that much.")
    min_outcomes: int = _key(1000, "Minimum number of jobs with an outcome that both models have scored.")
    min_users: int = _key(20, "Minimum number of users of these jobs.")
    min_trial_days: float = _key(
        6.0, "`gpuwaste train --challenge` leaves a model on trial in place, and trains nothing, for so many days."
    )
    compare_every_s: float = _key(3600.0, "Interval between two comparisons at the hub.")


@dataclass(frozen=True, slots=True)
class ActorConfig:
    """The daemon that takes approved actions in Slurm, on one host of the cluster; nothing acts without it."""

    actions: tuple[str, ...] = _key((), "Actions that the actor may take, such as signal, hold, cancel; empty: none.")
    max_per_hour: int = _key(20, "Maximum number of actions per hour, all rules together.")
    exempt_users: tuple[str, ...] = _key((), "Users whose jobs the actor never touches, whatever a rule wants.")
    exempt_accounts: tuple[str, ...] = _key((), "Accounts whose jobs the actor never touches, whatever a rule wants.")
    stop_file: str = _key(
        "/etc/gpuwaste/stop-actions", "While this file exists, the actor takes no action, whatever the hub sends."
    )
    state_dir: str = _key("/var/lib/gpuwaste-actor", "Directory of the journal of actions that were sent.")
    poll_s: float = _key(5.0, "Interval between two queries for an action to take.")
    confirm_s: float = _key(60.0, "Time in which Slurm must show that an action was done; then it has failed.")
    max_clock_s: float = _key(30.0, "Maximum difference between this host's clock and the hub's; beyond it, no action.")
    health_check_program: tuple[str, ...] = _key(
        (), "Program of action health_check and its words, {node} among them; the file must be root's."
    )
    profile_program: tuple[str, ...] = _key((), "Program of action profile: {job}, {user}, {nodes}.")
    resubmit_program: tuple[str, ...] = _key(
        (), "Program of action resubmit: {job}, {user}, {part} (a time limit) and {jobs} (how many of them)."
    )
    train_program: tuple[str, ...] = _key((), "Program of action train: {model}, the model in use.")
    promote_program: tuple[str, ...] = _key(
        ("/usr/bin/gpuwaste", "model", "promote", "{to}", "--if-champion", "{model}"),
        "Program of action promote: {to}, and {model}, the model in use.",
    )
    rollback_program: tuple[str, ...] = _key(
        ("/usr/bin/gpuwaste", "model", "rollback", "--if-champion", "{model}"),
        "Program of action rollback: {model}, the model in use.",
    )
    program_s: float = _key(600.0, "Maximum duration of such a program; then it is killed and the action has failed.")
    listen: str = _key("127.0.0.1:9463", "Address and port of /metrics; empty: no exporter.")
    tls_cert: str = _key("", "PEM certificate for /metrics; empty: plain HTTP.")
    tls_key: str = _key("", "PEM key for /metrics.")


@dataclass(frozen=True, slots=True)
class PluginConfig:
    """The submit plugins; they read these keys and [advisor] socket, one KEY = INTEGER or "TEXT" per line."""

    deadline_us: int = _key(5000, "Timeout of the whole exchange with the advisor, microseconds.")
    kill_switch: str = _key(
        "/etc/gpuwaste/disable", "While this file exists, the plugins accept every job without advice."
    )
    breaker_misses: int = _key(3, "Consecutive misses after which the breaker opens: jobs are accepted without advice.")
    breaker_first_ms: int = _key(
        1000, "Milliseconds until the first retry after that; doubled after each failed retry."
    )
    breaker_max_ms: int = _key(30000, "Maximum interval between two retries, milliseconds.")
    stale_s: int = _key(7200, "A reply that is based on an older job history counts as pass.")
    script_bytes: int = _key(
        32768, "Bytes of the batch script that are sent to the advisor; the hash is over the full script."
    )
    advisor_user: str = _key(
        "gpuwaste", "User of the advisor; replies of other users' processes are rejected, except root's."
    )


@dataclass(frozen=True, slots=True)
class NotifyConfig:
    """Mail from the hub: digests of wasted GPU time to users, the weekly list to staff; reports in END mails."""

    smtp_host: str = _key("", "Mail server; empty: the hub sends no mail.")
    smtp_port: int = _key(25, "Port of the mail server.")
    smtp_tls: str = _key("none", "none, starttls, or tls (TLS from the start).")
    smtp_ca: str = _key("", "PEM file of the CA that signed the server's certificate; empty: the system's CAs.")
    smtp_user: str = _key("", "User name for SMTP authentication; empty: none. Needs TLS.")
    smtp_password_file: str = _key("", "File with the password; not readable by other users.")
    smtp_timeout_s: float = _key(20.0, "Timeout of each step with the mail server.")
    sender: str = _key("", "Sender address (From).")
    reply_to: str = _key("", "Address for replies (Reply-To); empty: the sender's.")
    dry_run: bool = _key(default=True, text="Decide and record who would get mail, but send nothing.")
    every: str = _key("week", "Period of digests: week or day.")
    weekday: str = _key("monday", "Day of the weekly digests and of the staff list.")
    at: str = _key("08:00", "Time of day at which a period ends.")
    zone: str = _key("", "Time zone of at and quiet_hours, such as Europe/Berlin; empty: the host's.")
    quiet_hours: str = _key("", "Hours of the day in which no mail is sent, such as 20:00-07:00; empty: none.")
    settle_s: float = _key(
        3600.0, "Delay between the end of a period and its evaluation, so that late rows can arrive."
    )
    cooldown_days: float = _key(6.0, "Minimum number of days between two digests to the same user.")
    min_wasted_gpu_h: float = _key(5.0, "A user with fewer wasted GPU-hours in the period gets no digest.")
    min_wasted_share: float = _key(0.25, "A user whose wasted share of GPU time is smaller gets no digest, 0..1.")
    min_coverage: float = _key(0.8, "Minimum coverage of a job, and of a user's GPU time as a whole, 0..1.")
    jobs: int = _key(5, "Number of jobs listed in a digest, the largest waste first.")
    max_mails: int = _key(100, "Maximum number of digests per period; users with the largest waste come first.")
    address: str = _key("", "Pattern of addresses, such as {user}@example.org.")
    address_file: str = _key("", "File with lines USER ADDRESS, read first; the address - means no mail.")
    address_command: tuple[str, ...] = _key(
        (), "Command that prints the address, such as getent passwd {user}; run before the pattern is used."
    )
    opt_out_file: str = _key(
        "", "File with names of users who get no digest, one per line, in addition to those who opted out."
    )
    staff: tuple[str, ...] = _key((), "Addresses that get the weekly list of users with the largest waste.")
    staff_users: int = _key(20, "Number of users in that list.")
    limit_mail: bool = _key(
        default=False,
        text="Send mail to the owner of a job that will probably reach its time limit. Needs [hub] rescore.",
    )
    limit_min_h: float = _key(1.0, "A job with a shorter time limit gets no such mail, hours.")
    limit_mails: int = _key(3, "Maximum number of such mails per user in 24 hours; one mail lists all jobs due.")
    text: str = _key("", "Text at the end of each mail, such as where to get help.")
    audit_days: int = _key(400, "Retention of the record who got a digest, who did not, and why.")
    mail_program: str = _key("/usr/bin/mail", "Mail program that the MailProg wrapper gpuwaste-mail runs.")
    mail_report_s: int = _key(10, "Timeout of the wrapper for the job's report; 0: no report is added.")


@dataclass(frozen=True, slots=True)
class WebConfig:
    """Pages of the hub in a browser, and how users sign in."""

    enabled: bool = _key(default=True, text="Serve pages, and links to sign in to them.")
    url: str = _key(
        "", "URL of the pages in a browser, https://HOST[:PORT], without a path; empty: the address of [hub] listen."
    )
    proxy_users: tuple[str, ...] = _key(
        (),
        "Users of reverse proxies, such as www-data, that connect to [hub] socket and name the user in proxy_header;"
        " no other process of these users may be controlled by users.",
    )
    proxy_header: str = _key("X-Remote-User", "Header in which such a proxy names the user who has signed in to it.")
    session_h: float = _key(12.0, "Maximum duration of a session, hours, up to 12.")
    idle_h: float = _key(2.0, "Maximum time between two requests of a session, hours.")


@dataclass(frozen=True, slots=True)
class AnalyticsConfig:
    """Views of the whole system, and a language model of the site that may word their sentences."""

    model_url: str = _key(
        "",
        "URL of an OpenAI-compatible server (vLLM, Ollama, llama.cpp), such as http://127.0.0.1:8000/v1; it gets"
        " sentences without values. Empty: sentences are by rules.",
    )
    model: str = _key("", "Name by which that server knows the model.")
    model_timeout_s: float = _key(20.0, "Timeout for one sentence.")


@dataclass(frozen=True, slots=True)
class EstimateConfig:
    """What `gpuwaste estimate` knows of the site; it is read on the host where the command runs."""

    prices: tuple[str, ...] = _key(
        (),
        "Prices of a GPU-hour by GPU type, TYPE=NUMBER such as h100=2.5, all in one currency; empty: requests are"
        " compared by GPU-hours. Option --price goes before it.",
    )


@dataclass(frozen=True, slots=True)
class Config:
    """The whole file."""

    common: CommonConfig = field(default_factory=CommonConfig)
    slurm: SlurmClientConfig = field(default_factory=SlurmClientConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)
    hub: HubConfig = field(default_factory=HubConfig)
    advisor: AdvisorConfig = field(default_factory=AdvisorConfig)
    models: ModelsConfig = field(default_factory=ModelsConfig)
    actor: ActorConfig = field(default_factory=ActorConfig)
    plugin: PluginConfig = field(default_factory=PluginConfig)
    notify: NotifyConfig = field(default_factory=NotifyConfig)
    web: WebConfig = field(default_factory=WebConfig)
    analytics: AnalyticsConfig = field(default_factory=AnalyticsConfig)
    energy: EnergyConfig = field(default_factory=EnergyConfig)
    estimate: EstimateConfig = field(default_factory=EstimateConfig)


def load_config(path: Path | None = None) -> Config:
    """Read `path`, or the default path where it exists, and the drop-ins over it.

    Raises ConfigError naming the file, the key and the nearest known key.
    """
    layers = load_layers(path)
    if len(layers) == 1:
        return with_credentials(config_from_dict(dict(layers[0].data), str(layers[0].path)))
    for layer in layers:  # one by one: an error names the file that has it
        config_from_dict(dict(layer.data), str(layer.path))
    return with_credentials(config_from_dict(merged(layers), str(path or DEFAULT_PATH)))


def load_layers(path: Path | None = None) -> list[ConfigLayer]:
    """Return the files of a configuration as parsed, in the order in which they are read. Raises ConfigError."""
    return read_layers(path or DEFAULT_PATH, optional=path is None)


def config_from_dict(data: dict[str, Any], where: str) -> Config:
    """Build the configuration from parsed TOML; `where` names it in errors. Raises ConfigError."""
    config, faults = _read(data, where)
    if faults:
        raise faults[0]
    return config


def faulty_config(path: Path | None = None) -> tuple[Config, list[ConfigLayer], list[ConfigError]]:
    """Read what can be read: the configuration, with the default of what cannot, its files, and every error."""
    layers, faults = readable_layers(path or DEFAULT_PATH, optional=path is None)
    for layer in layers:
        faults += _read(layer.data, str(layer.path))[1]
    tables = [ConfigLayer(layer.path, _tables(layer.data)) for layer in layers]
    return with_credentials(_read(merged(tables), "")[0]), layers, faults


def _tables(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: table for name, table in data.items() if isinstance(table, dict)}


def _read(data: Mapping[str, Any], where: str) -> tuple[Config, list[ConfigError]]:
    known = [f.name for f in fields(Config)]
    faults = [
        ConfigError(f"{where}: unknown section [{name}]{nearest(name, set(known))}")
        for name in data
        if name not in known
    ]
    hints, sections = get_type_hints(Config), {}
    for name in known:
        values, own = read_keys(hints[name], data.get(name, {}), f"{where}: [{name}]")
        sections[name] = hints[name](**values)
        faults += own
    return Config(**sections), faults


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
