"""findings.md, from the docstring and the constants of each finding's file."""

import inspect
from typing import Any, Final

from gpuwaste.ledger.balance.findings import STRAND_FINDINGS
from gpuwaste.ledger.findings import FINDINGS
from gpuwaste.ledger.right_size.findings import SIZE_FINDINGS
from tools.reference.markdown import document, table

_INTRO: Final = """
A finding is a named cause of waste, with its evidence and what to change. `gpuwaste report` and `gpuwaste job`
print the findings under *Notes*; `--json` has them with their evidence. No finding is drawn from unknown time: each
asks that the share `min_coverage` of the allocation be known, or with jobstats as source the mean of each GPU
([coming from jobstats](../how-to/coming-from-jobstats.md)). The thresholds in `[hub]` are on the page of the
[configuration](configuration.md).
"""


_STRANDS: Final = """
The findings below are about jobs that kept GPUs from jobs that waited ([the balance](../explanation/balance.md)) and
used less memory or fewer CPUs than they requested. The GPU-hours are those that others could not use: they are not
counted as waste of the job.
"""
_SIZES: Final = """
The findings below are about the size of requests: what the last runs of such jobs used, and a smaller request that the
next run is expected to fit ([the right size](../how-to/right-size.md)). They are advice: their time is not counted as
waste. The hub draws them every 6 hours; only reports have them.
"""


def constants(module: Any) -> dict[str, object]:
    """Return the thresholds that a finding's own file declares."""
    source = inspect.getsource(module)
    numbers = {k: v for k, v in vars(module).items() if k.isupper() and isinstance(v, int | float)}
    return {name: value for name, value in numbers.items() if f"\n{name}:" in source}


def page() -> str:
    """Return the page: a section for each finding."""
    parts = [_INTRO]
    for name, module in [*FINDINGS.items(), *STRAND_FINDINGS.items(), *SIZE_FINDINGS.items()]:
        if name == next(iter(STRAND_FINDINGS)):
            parts.append(_STRANDS)
        if name == next(iter(SIZE_FINDINGS)):
            parts.append(_SIZES)
        parts.append(f"## {name}\n\n{inspect.cleandoc(str(module.__doc__))}")
        own = constants(module)
        if own:
            parts.append(table(("threshold", "value"), [(f"`{key}`", f"{value:g}") for key, value in own.items()]))
    return document("Findings", *parts)
