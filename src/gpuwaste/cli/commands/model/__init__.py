"""Train, evaluate, calibrate and manage the models of this site."""

HELP = "models of this site: train, evaluate, list, promote, roll back"
EXAMPLES = (
    ("gpuwaste model train -S now-365days", "Train on a year of this site."),
    ("gpuwaste model list", "All models; * marks the one in use."),
    ("gpuwaste model rollback", "Use the previous model again."),
)
