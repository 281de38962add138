"""The rules of devices hold in jobs: a job opens the files of its own GPUs, and those of no other."""

import re
from typing import Final

from tools.field.boot import GPUS
from tools.field.lab import Lab, expect

NAME: Final = "device rules inside jobs"
_OPEN: Final = """python3 - <<'P'
import errno, os
for minor in range({gpus}):
    try:
        os.close(os.open(f"/dev/nvidia{{minor}}", os.O_RDWR))
    except OSError as error:
        print(minor, errno.errorcode[error.errno])
P
echo allocated $SLURM_JOB_GPUS"""


def run(lab: Lab) -> None:
    """Open all files in a job that has two of four; no driver is behind them, so that no open succeeds."""
    job = lab.play("bob", 2, [], script=_OPEN.format(gpus=len(GPUS)) + "\nsleep 3")
    lab.ended(job, 60)
    said = lab.output(job)
    (allocated,) = re.findall(r"^allocated (\S+)$", said, re.MULTILINE)
    own = {int(minor) for minor in allocated.split(",")}
    expect(len(own) == 2, f"job {job} has GPUs {allocated}")  # noqa: PLR2004 as asked
    for minor in GPUS:
        (word,) = re.findall(rf"^{minor} (\w+)$", said, re.MULTILINE) or ["nothing"]
        wanted = "ENXIO" if minor in own else "EPERM"
        expect(word == wanted, f"job {job} with GPUs {allocated} opened /dev/nvidia{minor}: {word}, not {wanted}")
