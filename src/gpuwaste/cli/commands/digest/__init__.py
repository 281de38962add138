"""Mail digests of idle GPU time: preview yours; operators list, replay and send them."""

from gpuwaste.cli.action_files import ActionGroup

HELP = "mail digests of idle GPU time: preview, list, replay, run"
EXAMPLES = (
    ("gpuwaste digest preview", "The digest that you would get now."),
    ("gpuwaste digest replay -S now-90days", "Who would have got digests (operators)."),
)
_ACTIONS = ActionGroup(__name__, reads="digest")
arguments, run = _ACTIONS.arguments, _ACTIONS.run
