"""Simulate schedulers on a history of jobs: waits, slowdown and utilization under each of them.

`run` plays the jobs as they were, `what-if` with changes, `compare` prints what differs between two saved results.
"""

HELP = "what another scheduler, or another request, would have done with a history of jobs"
EXAMPLES = (
    (
        "gpuwaste simulate run -S now-30days --scheduler easy,conservative",
        "The last month under two schedulers.",
    ),
    ("gpuwaste simulate what-if gpus -S now-30days", "The same month with GPU requests as large as what was used."),
)
