"""Say that figures, advice or an action of a rule are wrong, and reply to that; without JOB list the appeals."""

import argparse
from typing import Any

from gpuwaste.cli.options import config_of
from gpuwaste.cli.resource_commands import resource_commands

HELP = "contest the figures of a job, advice at sbatch or an action of a rule"
EXAMPLES = (
    (
        'gpuwaste appeal 4711 --reason "it waited for a license"',
        "The job was cancelled by a rule, or its figures are wrong.",
    ),
    ("gpuwaste appeal --status open", "Appeals without a reply."),
    ('gpuwaste appeal reply 3f2a9c81d0b4 --text "You are right: ..." --outcome upheld', "Close an appeal (operators)."),
)
_REPLY = "reply"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "words", metavar="JOB", nargs="*", help="the job or the id of a verdict; or `reply ID` (operators)"
    )
    parser.add_argument("--reason", metavar="TEXT", help="what is wrong, at most 500 characters")
    parser.add_argument(
        "--about", choices=("judgement", "verdict", "action"), metavar="WHAT",
        help="what is wrong: judgement, verdict, action (default: the last action on the job, else its figures)",
    )  # fmt: skip
    parser.add_argument("--text", metavar="TEXT", help="reply to the user, at most 1000 characters")
    parser.add_argument("--outcome", choices=("upheld", "dismissed"), metavar="WORD", help="upheld or dismissed")
    resource_commands()["appeals"].arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Send the appeal or the reply to the hub and print the answer, or print the list."""
    from gpuwaste.core.errors import UsageError

    match options.words:
        case []:
            if options.reason is not None or options.text is not None:
                raise UsageError('name the job: gpuwaste appeal JOB --reason "..."')
            return resource_commands()["appeals"].run(options)
        case [word, appeal] if word == _REPLY:
            if not options.text or options.outcome is None:
                raise UsageError(f'a reply needs a text: gpuwaste appeal reply {appeal} --text "..." --outcome upheld')
            return _sent(options, f"/v1/appeals/{appeal}/reply", {"text": options.text, "outcome": options.outcome})
        case [job] if job != _REPLY:
            if not options.reason:
                raise UsageError(f'an appeal needs a reason: gpuwaste appeal {job} --reason "..."')
            order = {"job": job, "reason": options.reason, "about": options.about}
            return _sent(options, "/v1/appeals", order)
        case _:
            raise UsageError("expected one job, or reply and the id of an appeal")


def _sent(options: argparse.Namespace, path: str, order: dict[str, Any]) -> int:
    """Send an order and print the appeal. Raises as the hub's client does."""
    from gpuwaste.cli.hub_access import hub_client
    from gpuwaste.cli.options import print_own, typed
    from gpuwaste.ledger.appeals.appeal_text import appeal_text
    from gpuwaste.ledger.appeals.appeal_types import AppealDocument

    as_json = options.form is not None
    raw = hub_client(config_of(options)).post(path, order)
    print_own(typed(raw, AppealDocument, printed=not as_json), appeal_text, as_json=as_json)
    return 0
