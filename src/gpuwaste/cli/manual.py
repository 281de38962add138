"""The end of every manual page: exit codes, files, environment variables."""

from typing import Final

EXIT_CODES: Final = {
    0: "Success.",
    1: "Error: one line on stderr says what happened, where, and what to do. `gpuwaste doctor`: a check failed.",
    2: "Wrong usage, or a configuration file with an error.",
    3: "No data: nothing was found, or nothing that the caller may see.",
    4: "`--fail-above PERCENT`: the value is above that percentage.",
    5: "`gpuwaste idle`: no, it is not idle.",
    6: "`gpuwaste idle`: it is not known whether it is idle.",
    130: "Interrupted from the keyboard.",
    141: "Output pipe closed.",
}
FILES: Final = {
    "/etc/gpuwaste/gpuwaste.toml": "Configuration of all programs; lists every key with its default.",
    "/etc/gpuwaste/policies.d": "Submit policies, one TOML file each.",
    "/etc/gpuwaste/campaigns.d": "Campaigns, one TOML file each.",
    "/etc/gpuwaste/disable": "While this file exists the submit plugins accept every job without advice.",
    "/etc/gpuwaste/stop-actions": "While this file exists the actor takes no action.",
    "/run/gpuwaste": "Sockets of the services.",
    "/run/gpuwaste-jobs": "Files that prolog and epilog write.",
    "/var/lib/gpuwaste": "State of the services, and the models.",
}
ENVIRONMENT: Final = {
    "SLURM_CONF": "slurm.conf for Slurm's commands, if [common] slurm_conf is empty.",
    "TZ": "Time zone in which times are read and printed.",
    "COLUMNS": "Width of help texts, instead of the terminal's.",
    "PATH": "Where simulate run --engine looks for Slurm's daemons and commands first.",
    "NO_COLOR": "No colours on a terminal; the same as TERM=dumb.",
    "GPUWASTE_DEBUG": "Prints the traceback of a bug in gpuwaste instead of one line.",
    "SSL_CERT_FILE": "Trusted certificate authorities, if [common] hub_ca is empty.",
    "NOTIFY_SOCKET, WATCHDOG_USEC, JOURNAL_STREAM": "Set by systemd for the services.",
}
