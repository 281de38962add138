"""Print whether a job or a node is idle, for scripts that end idle ones: yes, no or unknown, with the evidence.

The exit code is 0 only for yes: `gpuwaste idle 7 --for 1h && scancel 7`. The answer is about the time up to the agents'
last reports, and its signature is verified. Nodes are for operators and staff.
"""

import argparse
import secrets
from typing import TYPE_CHECKING, Any, Final

from gpuwaste.cli.options import add_config, add_forms, config_of, emit, typed
from gpuwaste.cli.words import require_job

if TYPE_CHECKING:
    from gpuwaste.core.config import Config

HELP = "whether a job or a node is idle: yes, no or unknown"
EXAMPLES = (
    ("gpuwaste idle 4711", "Whether all GPUs of a job are idle, since when, by which reports."),
    ("gpuwaste idle 4711 --for 1h --json", "Whether they have been idle for an hour, as JSON."),
    ("gpuwaste idle --node gpu7", "Whether every job on a node is idle (operators and staff)."),
)
EXIT_NO: Final = 5
EXIT_UNKNOWN: Final = 6
_EXITS: Final = {"yes": 0, "no": EXIT_NO, "unknown": EXIT_UNKNOWN}
_NONCE_B: Final = 24
_LONGEST_NODE: Final = 256


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "id", metavar="ID", nargs="?", help="job as Slurm prints it: 7, 3_1 (array task), 4+1 (het component)"
    )
    parser.add_argument("--node", metavar="NAME", help="a node in place of a job (operators and staff)")
    parser.add_argument(
        "--for", dest="for_s", metavar="DURATION", help="idle time for yes: 120s, 5m or 1h (default: the site's)"
    )
    parser.add_argument(
        "--max-age",
        dest="max_age_s",
        metavar="DURATION",
        help="largest age of the reports for yes (default: as old as they may be)",
    )
    add_forms(parser)
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Query the hub, verify its answer and print it."""
    from gpuwaste.core.errors import NoDataError
    from gpuwaste.ledger.idleness.idleness_text import idleness_text
    from gpuwaste.ledger.idleness.idleness_types import IdlenessDocument

    path, name, what = _asked(options)
    question = {"nonce": secrets.token_urlsafe(_NONCE_B), **_limits(options)}
    try:
        raw = _answer(config_of(options), path, question)
    except NoDataError:
        raise NoDataError(f"{what} {name}: not found, or not visible to you") from None
    document = typed(raw, IdlenessDocument, printed=options.form is None)
    _check(raw, what, name, question)
    return emit(raw, document, options, idleness_text, empty=False, wasted=None) or _EXITS[document.answer]


def _asked(options: argparse.Namespace) -> tuple[str, str, str]:
    """Return the path, the name and its kind. Raises UsageError."""
    from gpuwaste.core.errors import UsageError

    if (options.id is None) == (options.node is None):
        raise UsageError("give a job ID, or --node NAME")
    if options.id is not None:
        require_job(options.id)
        return f"/v1/jobs/{options.id}/idleness", options.id, "job"
    if not options.node or "/" in options.node or len(options.node) > _LONGEST_NODE:
        raise UsageError(f"--node {options.node[:40]!r}: expected the name of a node")
    return f"/v1/nodes/{options.node}/idleness", options.node, "node"


def _limits(options: argparse.Namespace) -> dict[str, int]:
    """Return the limits that were given, in seconds. Raises UsageError."""
    from gpuwaste.cli.time_options import parse_seconds

    given = {"for_s": options.for_s, "max_age_s": options.max_age_s}
    return {name: int(parse_seconds(value)) for name, value in given.items() if value is not None}


def _answer(config: "Config", path: str, question: dict[str, Any]) -> dict[str, Any]:
    """Return the hub's answer, its signature verified: on the Unix socket there is none."""
    if config.common.hub_url.startswith("unix:"):
        from gpuwaste.cli.hub_access import hub_client

        return hub_client(config).get_signed(path, question)
    from gpuwaste.net.daemon_client import daemon_client

    return daemon_client(config).get_signed(path, question)


def _check(raw: dict[str, Any], what: str, name: str, question: dict[str, Any]) -> None:
    """Raise AuthError unless the answer is the one to this question."""
    from gpuwaste.core.errors import AuthError

    wanted = {"about": what, "name": name, **question}
    if any(raw.get(key) != value for key, value in wanted.items()):
        raise AuthError("the hub's answer is for another question: it may be an old one that somebody sent again")
