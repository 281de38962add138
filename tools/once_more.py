"""python -m tools.once_more CACHE FOLDER...: ends with 0 where what failed may run once more, alone.

CACHE is the cache folder of a pytest that has ended; at most FEW tests have failed in it, all below the folders given
(docs/decisions/0028).
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

FEW: Final = 5


def may_run_again(failed: Sequence[str], folders: Sequence[str]) -> bool:
    """Return whether these tests are few, and each is in one of the folders ("tests/system/")."""
    return 0 < len(failed) <= FEW and all(test.startswith(tuple(folders)) for test in failed)


def main(arguments: Sequence[str]) -> int:
    """Return 0 for yes."""
    cache, *folders = arguments
    file = Path(cache) / "v" / "cache" / "lastfailed"
    failed = list(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else []
    return 0 if may_run_again(failed, [f"{folder}/" for folder in folders]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
