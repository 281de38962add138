"""Submit policies: check their files, explain one decision, replay them on the job history, list their verdicts."""

HELP = "submit policies: check, explain, replay, verdicts"
EXAMPLES = (
    ("gpuwaste policy check", "Before policies are loaded."),
    ("gpuwaste policy replay -S now-30days", "What they would have done."),
    ("gpuwaste policy verdicts --score", "How good the verdicts at sbatch were."),
)
