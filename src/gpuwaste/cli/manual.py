"""What holds for every command and stands in its manual page: exit codes, files, variables of the environment."""

from typing import Final

EXIT_CODES: Final = {
    0: "All went well.",
    1: "An error: one line on stderr says what, where, and what to do. `gpuwaste doctor`: a check failed.",
    2: "Wrong usage, or a configuration file that cannot be used as it stands.",
    3: "The question is fine and there is nothing to answer it with, or nothing that the caller may see.",
    4: "`--fail-over PCT`: more of the GPU-time than that is wasted.",
    130: "Interrupted from the keyboard.",
    141: "Who read the output went away.",
}
FILES: Final = {
    "/etc/gpuwaste/gpuwaste.toml": "The configuration of all programs; every key is in it with its default.",
    "/etc/gpuwaste/policies.d": "Policies of advice at sbatch, one TOML file each.",
    "/etc/gpuwaste/disable": "While this file is there the submit plugins ask nothing.",
    "/run/gpuwaste": "Sockets of the services.",
    "/run/gpuwaste-jobs": "What prolog and epilog leave.",
    "/var/lib/gpuwaste": "State of the services, and the models.",
}
ENVIRONMENT: Final = {
    "SLURM_CONF": "Which slurm.conf Slurm's commands read, where [common] slurm_conf is empty.",
    "TZ": "The zone in which times are read and printed.",
    "NO_COLOR": "No colours, also on a terminal. TERM=dumb does the same.",
    "GPUWASTE_DEBUG": "Shows where a defect of gpuwaste lies, instead of one line.",
    "SSL_CERT_FILE": "The authorities that are trusted, where [common] hub_ca is empty.",
    "NOTIFY_SOCKET, WATCHDOG_USEC, JOURNAL_STREAM": "Set by systemd for the services.",
}
