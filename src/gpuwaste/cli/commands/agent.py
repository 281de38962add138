"""Run the agent in the foreground (what the systemd unit runs), or query the agent that runs on this node."""

import argparse
import sys

from gpuwaste.cli.options import add_config, config_of

HELP = "the agent of a GPU node: run, release, status"
EXAMPLES = (
    ("gpuwaste agent status", "Status of this node's agent."),
    ("gpuwaste agent release --for 120s", "Release the GPUs so that one can be reset."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add_config(actions.add_parser("run", help="run in the foreground until SIGTERM; SIGHUP reloads the configuration"))
    release = actions.add_parser("release", help="close NVML for a while so that a GPU can be reset")
    release.add_argument(
        "--for", dest="duration", default="120s", metavar="DURATION", help="120s, 5m or 1h (default: 120s)"
    )
    add_config(release)
    add_config(actions.add_parser("status", help="print the status of the running agent"))


def run(options: argparse.Namespace) -> int:
    """Run the daemon, or query it."""
    from gpuwaste.cli.programs import load_daemon, load_program
    from gpuwaste.cli.time_options import parse_seconds

    config = config_of(options)
    if options.action == "run":
        daemon = load_daemon("gpuwaste.agent.agent_daemon", "", "the GPU nodes")
        code: int = daemon.run_agent(config, path=options.config)
        return code
    request = {"command": options.action}
    if options.action == "release":
        request["seconds"] = parse_seconds(options.duration)
    sys.stdout.write(load_program("gpuwaste.agent.control_socket", "", "the GPU nodes").ask_agent(config, request))
    return 0
