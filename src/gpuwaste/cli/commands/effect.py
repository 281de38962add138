"""Show what campaigns have saved, measured against users who were not notified. For operators.

A campaign is a file in [common] campaigns_dir that holds back a policy, a rule or the digest from a part of the users.
Without a campaign no saving is claimed: --split only shows the difference before and after an instant.
"""

import argparse

from gpuwaste.cli.options import add_config, add_forms, config_of
from gpuwaste.cli.words import path_word

HELP = "what campaigns have saved, with intervals (operators)"
EXAMPLES = (
    ("gpuwaste effect", "Every campaign: what it has saved, and whether more jobs failed."),
    ("gpuwaste effect --check /etc/gpuwaste/campaigns.d", "Before the hub loads changed campaigns."),
    ("gpuwaste effect --split 2027-05-03", "Before and after a day: a difference, and no effect."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("campaign", nargs="?", metavar="CAMPAIGN", help="only this campaign")
    parser.add_argument("--split", metavar="TIME", help="compare before and after this time, without a campaign")
    parser.add_argument("--weeks", type=int, default=4, metavar="N", help="weeks on each side (default: 4)")
    parser.add_argument(
        "--check",
        nargs="*",
        type=path_word,
        metavar="DIR|FILE",
        help="check campaigns, and print what each holds back (default: common.campaigns_dir)",
    )
    add_forms(parser)
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Do it."""
    from gpuwaste.cli.effect_commands import check, show, split

    config = config_of(options)
    if options.check is not None:
        return check(options.check, config)
    return show(options, config) if options.split is None else split(options, config)
