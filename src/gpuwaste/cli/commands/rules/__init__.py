"""The site's rules: list and check them, replay them on history, and decide on the actions that they want."""

HELP = "rules about idle GPUs and other events, and their actions"
EXAMPLES = (
    ("gpuwaste rules check /etc/gpuwaste/rules.d", "Before the hub loads changed rules."),
    ("gpuwaste rules replay idle-gpus -S now-30days", "Whom a rule would have hit, and how often it would be wrong."),
    ("gpuwaste rules actions --status intended", "Actions that wait for a decision."),
)
READS = "rules"  # actions that a file of resources declares
