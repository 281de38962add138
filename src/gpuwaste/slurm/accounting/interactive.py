"""Whether a run is interactive: salloc, or srun without a batch script."""

from collections.abc import Collection


def is_interactive(submit_line: str, steps: Collection[str], *, het_part: bool = False) -> bool:
    """Tell by the submit line, and by the names of the steps where it is not kept.

    Only the first component of a het job has the batch step: without a line, `het_part` takes another for batch.
    """
    if "batch" in steps:
        return False
    words = submit_line.split(None, 1)
    if words:
        return words[0].rpartition("/")[2] in {"salloc", "srun"}
    return not het_part and any(step == "interactive" or step[:1].isdigit() for step in steps)
