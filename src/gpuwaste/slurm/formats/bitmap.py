"""The waiting tasks of an array: Slurm keeps a bitmap in hex (0x23A), sacct prints ranges (1,3-5,9)."""

import re

_HEX = re.compile(r"0x([0-9A-Fa-f]{1,1048576})")


def task_text(text: str) -> str:
    """Return the tasks of a hex bitmap as sacct prints them; any other text as it is."""
    match = _HEX.fullmatch(text)
    if match is None:
        return text
    bits = bin(int(match[1], 16))[:1:-1]
    ranges: list[list[int]] = []
    for task in (index for index, bit in enumerate(bits) if bit == "1"):
        if ranges and task == ranges[-1][1] + 1:
            ranges[-1][1] = task
        else:
            ranges.append([task, task])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
