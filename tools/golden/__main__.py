"""Ask a made site all that can be read, and keep the answers or compare them with kept ones.

python -m tools.golden --write FILE
python -m tools.golden --compare FILE
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

_SURROUNDINGS = {"TZ": "UTC", "LC_ALL": "C.UTF-8", "LANGUAGE": "", "COLUMNS": "100", "NO_COLOR": "1"}


def main() -> int:
    """Run the tool; returns 1 where an answer differs."""
    parser = argparse.ArgumentParser(prog="python -m tools.golden", description=__doc__.partition("\n")[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", type=Path, metavar="FILE", help="write the answers")
    what.add_argument("--compare", type=Path, metavar="FILE", help="compare with these answers; exit code 1: differs")
    options = parser.parse_args()
    os.environ.update(_SURROUNDINGS)
    time.tzset()
    os.umask(0o022)
    from tools.golden import kept  # noqa: PLC0415 what they import reads the time zone
    from tools.golden.asking import answers  # noqa: PLC0415 same

    began = time.monotonic()
    file = (options.write or options.compare).resolve()
    # Tables are as wide as the paths in them: the folder's is always as long.
    with tempfile.TemporaryDirectory(prefix="gwgolden-", dir="/tmp") as folder:
        found = answers(Path(folder).resolve())
    if options.write:
        kept.write(file, found)
        said = f"{len(found)} answers written, {file.stat().st_size} bytes"
        differing = 0
    else:
        texts = list(kept.differences(kept.read(file), found))
        sys.stdout.writelines(texts)
        differing, said = len(texts), f"{len(found)} answers compared, {len(texts)} differ"
    sys.stdout.write(f"{said}, {time.monotonic() - began:.0f} s\n")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
