"""Mail digests of idle GPU time: preview yours; operators list, replay and send them."""

HELP = "mail digests of idle GPU time: preview, list, replay, run"
EXAMPLES = (
    ("gpuwaste digest preview", "The digest that you would get now."),
    ("gpuwaste digest replay -S now-90days", "Who would have got digests (operators)."),
)
READS = "digest"  # actions that a file of resources declares
