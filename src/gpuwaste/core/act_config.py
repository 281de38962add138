"""Sections [actor] and [notify] of gpuwaste.toml: what is done about waste, and who gets mail."""

from dataclasses import dataclass

from gpuwaste.core.typed_toml import key


@dataclass(frozen=True, slots=True)
class ActorConfig:
    """The daemon that takes approved actions in Slurm, on one host of the cluster; nothing acts without it."""

    actions: tuple[str, ...] = key((), "Actions that the actor may take, such as signal, hold, cancel; empty: none.")
    max_per_hour: int = key(20, "Maximum number of actions per hour, all rules together.")
    exempt_users: tuple[str, ...] = key((), "Users whose jobs the actor never touches, whatever a rule requests.")
    exempt_accounts: tuple[str, ...] = key((), "Accounts whose jobs the actor never touches, whatever a rule requests.")
    stop_file: str = key(
        "/etc/gpuwaste/stop-actions", "While this file exists, the actor takes no action, whatever the hub sends."
    )
    state_dir: str = key("/var/lib/gpuwaste-actor", "Directory of the journal of actions that were sent.")
    health_check_program: tuple[str, ...] = key(
        (), "Program of action health_check and its arguments, {node} among them; the file must belong to root."
    )
    profile_program: tuple[str, ...] = key((), "Program of action profile: {job}, {user}, {nodes}.")
    resubmit_program: tuple[str, ...] = key(
        (), "Program of action resubmit: {job}, {user}, {part} (a time limit) and {jobs} (how many of them)."
    )
    train_program: tuple[str, ...] = key((), "Program of action train: {model}, the model in use.")
    listen: str = key("127.0.0.1:9463", "Address and port of /metrics; empty: no exporter.")
    tls_cert: str = key("", "PEM certificate for /metrics; empty: plain HTTP.")
    tls_key: str = key("", "PEM key for /metrics.")


@dataclass(frozen=True, slots=True)
class NotifyConfig:
    """Mail from the hub: digests of wasted GPU time to users, the weekly list to staff; reports in END mails."""

    smtp_host: str = key("", "Mail server; empty: the hub sends no mail.")
    smtp_port: int = key(25, "Port of the mail server.")
    smtp_tls: str = key("none", "none, starttls, or tls (TLS from the start).")
    smtp_ca: str = key("", "PEM file of the CA that signed the server's certificate; empty: the system's CAs.")
    smtp_user: str = key("", "User name for SMTP authentication; empty: none. Needs TLS.")
    smtp_password_file: str = key("", "File with the password; not readable by other users.")
    sender: str = key("", "Sender address (From).")
    reply_to: str = key("", "Address for replies (Reply-To); empty: the sender's.")
    dry_run: bool = key(default=True, text="Decide and record who would get mail, but send nothing.")
    every: str = key("week", "Period of digests: week or day.")
    weekday: str = key("monday", "Day of the weekly digests and of the staff list.")
    at: str = key("08:00", "Time of day at which a period ends.")
    zone: str = key("", "Time zone of at and quiet_hours, such as Europe/Berlin; empty: the host's.")
    quiet_hours: str = key("", "Hours of the day in which no mail is sent, such as 20:00-07:00; empty: none.")
    settle_s: float = key(3600.0, "Delay between the end of a period and its evaluation, so that late rows can arrive.")
    cooldown_days: float = key(6.0, "Minimum number of days between two digests to the same user.")
    min_wasted_gpu_h: float = key(5.0, "A user with fewer wasted GPU-hours in the period gets no digest.")
    min_wasted_share: float = key(0.25, "A user whose wasted share of GPU time is smaller gets no digest, 0..1.")
    max_mails: int = key(100, "Maximum number of digests per period; users with the largest waste come first.")
    address: str = key("", "Pattern of addresses, such as {user}@example.org.")
    address_file: str = key("", "File with lines USER ADDRESS, read first; the address - means no mail.")
    address_command: tuple[str, ...] = key(
        (), "Command that prints the address, such as getent passwd {user}; run before the pattern is used."
    )
    sponsor_file: str = key(
        "", 'TOML file with the sponsors of accounts, lines ACCOUNT = "user" or a list; others: their coordinators.'
    )
    sponsor_command: tuple[str, ...] = key(
        (), "Command that prints the sponsors of {account}, for accounts that sponsor_file does not list."
    )
    opt_out_file: str = key(
        "", "File with names of users who get no digest, one per line, in addition to those who opted out."
    )
    staff: tuple[str, ...] = key((), "Addresses that get the weekly list of users with the largest waste.")
    limit_mail: bool = key(
        default=False,
        text="Send mail to the owner of a job that will probably reach its time limit. Needs [hub] rescore.",
    )
    limit_min_h: float = key(1.0, "A job with a shorter time limit gets no such mail, hours.")
    text: str = key("", "Text at the end of each mail, such as where to get help.")
    audit_days: int = key(400, "Retention of the record who got a digest, who did not, and why.")
    mail_program: str = key("/usr/bin/mail", "Mail program that the MailProg wrapper gpuwaste-mail runs.")
    mail_report_s: int = key(10, "Timeout of the wrapper for the job's report; 0: no report is added.")
