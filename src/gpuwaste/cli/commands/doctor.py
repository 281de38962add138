"""Check what gpuwaste needs on this host: one line per check, ok, warn or fail, with what to do."""

import argparse
import os
import sys
import time
from typing import TYPE_CHECKING

from gpuwaste.cli.options import add, add_config, add_role, config_of, roles_of
from gpuwaste.core.errors import GpuwasteError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuwaste.cli.check import Check, Role, Surroundings

HELP = "check what gpuwaste needs on this host"
EXAMPLES = (
    ("gpuwaste doctor", "What is wrong on this host, and what to do."),
    ("gpuwaste doctor --nagios", "One line for a monitoring system."),
    ("gpuwaste doctor --before-install", "Whether the packages and their services fit this host."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_config(parser)
    add_role(parser)
    parser.add_argument(
        "--before-install",
        action="store_true",
        help="check only what the packages expect of the host: Python, glibc, systemd, SELinux, firewalld, crypto "
        "policy, munge, Slurm; without --role for all roles",
    )
    limit = "time limit of the command (default: 20, with --before-install 60)"
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help=limit)
    form = parser.add_mutually_exclusive_group()
    add(form, "json")
    form.add_argument(
        "--nagios", action="store_true", help="one line for Nagios; exit code 0 ok, 1 warning, 2 critical, 3 unknown"
    )


def run(options: argparse.Namespace) -> int:
    """Print a line for each check; exit with 1 where one fails."""
    from gpuwaste.cli import doctor_checks

    code = _printed(options)
    if doctor_checks.left_behind():
        # In C++ code such a thread aborts the process while the interpreter ends.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def _printed(options: argparse.Namespace) -> int:
    from gpuwaste.cli import doctor_checks
    from gpuwaste.cli.check import Status

    try:
        host, roles, checks = _before_install(options) if options.before_install else _installed(options)
        found: list[Check] = []
        for check in checks:
            found.append(check)
            if not (options.json or options.nagios):
                sys.stdout.write(doctor_checks.as_text(check))
                sys.stdout.flush()
    except GpuwasteError as error:
        if not options.nagios:
            raise
        from gpuwaste.show.terminal_cells import one_line

        sys.stdout.write(f"GPUWASTE UNKNOWN - {one_line(str(error))}\n")
        return doctor_checks.NAGIOS_UNKNOWN
    if options.nagios:
        line, code = doctor_checks.as_nagios(found)
        sys.stdout.write(line)
        return code
    if options.json:
        sys.stdout.write(doctor_checks.as_json(host, roles, found))
    return 1 if doctor_checks.worst(found) is Status.FAIL else 0


def _before_install(options: argparse.Namespace) -> "tuple[str, frozenset[Role], Iterator[Check]]":
    """Return this host's name, the roles that are checked, and the checks of its operating system."""
    import socket

    from gpuwaste.cli.check import EVERYWHERE, Role
    from gpuwaste.cli.doctor_checks import _INSTALL_DEADLINE_S, host_checks

    roles = frozenset(map(Role, options.role or ())) or EVERYWHERE
    return socket.gethostname(), roles, host_checks(roles, options.timeout or _INSTALL_DEADLINE_S)


def _installed(options: argparse.Namespace) -> "tuple[str, frozenset[Role], Iterator[Check]]":
    """Return this host's name, its roles, and the checks of what is installed. Raises ConfigError, SlurmError."""
    from gpuwaste.cli import doctor_checks

    began = time.monotonic()
    limit_s = options.timeout or doctor_checks.DEADLINE_S
    around = doctor_checks.within(lambda: _surroundings(options), limit_s)
    return around.host, around.roles, doctor_checks.run_checks(around, limit_s, time.monotonic() - began)


def _surroundings(options: argparse.Namespace) -> "Surroundings":
    """Return what the checks read. Raises ConfigError, SlurmError."""
    from gpuwaste.cli import doctor_checks
    from gpuwaste.cli.check import Surroundings
    from gpuwaste.cli.hub_access import ask_hub
    from gpuwaste.cli.programs import load_program
    from gpuwaste.core.config import DEFAULT_PATH
    from gpuwaste.slurm.clients.command_client import CommandClient

    config = config_of(options)
    limit_s = options.timeout or doctor_checks.DEADLINE_S
    slurm = CommandClient(config.common.slurm_conf, min(config.common.slurm_timeout_s, limit_s))
    return Surroundings(
        config,
        options.config or DEFAULT_PATH,
        slurm,
        ask_hub,
        doctor_checks.user_name(),
        roles_of(options, config),
        lambda c: dict(load_program("gpuwaste.agent.control_socket").agent_answer(c, {"command": "status"}, limit_s)),
    )
