"""The site's rules: list and check them, replay them on history, and decide on the actions that they want."""

from gpuwaste.cli.action_files import ActionGroup

HELP = "rules about idle GPUs and other events, and the actions that they want"
EXAMPLES = (
    ("gpuwaste rules check /etc/gpuwaste/rules.d", "Before the hub loads changed rules."),
    ("gpuwaste rules replay idle-gpus -S now-30days", "Whom a rule would have hit, and how often it would be wrong."),
    ("gpuwaste rules actions --status intended", "Actions that wait for a decision."),
)
_ACTIONS = ActionGroup(__name__, reads="rules")
arguments, run = _ACTIONS.arguments, _ACTIONS.run
