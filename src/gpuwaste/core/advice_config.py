"""Sections [advisor], [models] and [plugin] of gpuwaste.toml: advice at submission."""

from dataclasses import dataclass

from gpuwaste.core.typed_toml import key


@dataclass(frozen=True, slots=True)
class AdvisorConfig:
    """The daemon on each slurmctld host, which answers the submit plugins."""

    socket: str = key("/run/gpuwaste/advisor.sock", "Unix socket for the submit plugins.")
    state_dir: str = key(
        "/var/lib/gpuwaste/advisor", "Directory of job history, budgets and verdicts that are not sent yet."
    )
    policies_dir: str = key(
        "/etc/gpuwaste/policies.d",
        "Directory of policies, one TOML file each; without any, all jobs are in shadow mode.",
    )
    slurm_user: str = key(
        "", "SlurmUser, the only user besides root that gets answers; empty: read from Slurm at start."
    )
    listen: str = key("127.0.0.1:9462", "Address and port of /metrics; empty: no exporter.")
    tls_cert: str = key("", "PEM certificate for /metrics; empty: plain HTTP.")
    tls_key: str = key("", "PEM key for /metrics.")
    history_every_s: float = key(5.0, "Interval between two queries for new job events to the hub.")
    stale_s: float = key(3600.0, "Maximum age of the job history; beyond it jobs are accepted without advice.")
    max_queue: int = key(64, "Maximum length of the request queue; further requests are answered with pass at once.")
    shadow_cpu_pct: float = key(
        5.0, "CPU that models on trial may take, percent of one core on average; 0: they are not scored."
    )


@dataclass(frozen=True, slots=True)
class ModelsConfig:
    """How models renew themselves: what a model on trial has to show before it replaces the one in use."""

    renew: bool = key(
        default=False,
        text="Let the hub promote a model on trial that was better, and roll back one that is worse than the baseline.",
    )
    targets: tuple[str, ...] = key(("failure",), "Targets that decide, such as failure, timeout, gpu_underused.")
    min_outcomes: int = key(1000, "Minimum number of jobs with an outcome that both models have scored.")
    min_users: int = key(20, "Minimum number of users of these jobs.")
    compare_every_s: float = key(3600.0, "Interval between two comparisons at the hub.")


@dataclass(frozen=True, slots=True)
class PluginConfig:
    """The submit plugins; they read these keys and [advisor] socket, one KEY = INTEGER or "TEXT" per line."""

    deadline_us: int = key(5000, "Timeout of the entire exchange with the advisor, microseconds.")
    kill_switch: str = key(
        "/etc/gpuwaste/disable", "While this file exists, the plugins accept every job without advice."
    )
    breaker_misses: int = key(3, "Consecutive misses after which the breaker opens: jobs are accepted without advice.")
    breaker_first_ms: int = key(1000, "Milliseconds until the first retry after that; doubled after each failed retry.")
    breaker_max_ms: int = key(30000, "Maximum interval between two retries, milliseconds.")
    stale_s: int = key(7200, "A reply that is based on an older job history counts as pass.")
    script_bytes: int = key(
        32768, "Bytes of the batch script that are sent to the advisor; the hash is over the full script."
    )
    advisor_user: str = key(
        "gpuwaste", "User of the advisor; replies of other users' processes are rejected, except root's."
    )
