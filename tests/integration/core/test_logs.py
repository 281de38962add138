"""The log of a process whose stderr is the journal's."""

import os
import subprocess
import sys
from pathlib import Path


def test_systemds_prefix_is_written_where_stderr_is_the_journals(tmp_path: Path) -> None:
    """A process whose stderr is the file that JOURNAL_STREAM names writes <4>; with another file there, WARNING."""
    program = (
        "import logging; from gpuwaste.core.logs import set_up_logging; set_up_logging(); logging.warning('a\\nb')"
    )
    for same, expected in ((True, "<4>root: a\\nb\n"), (False, "WARNING root: a\\nb\n")):
        with (tmp_path / "journal").open("w") as stream:
            status = os.fstat(stream.fileno() if same else 0)
            environ = {**os.environ, "JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
            subprocess.run([sys.executable, "-c", program], stderr=stream, env=environ, check=True)
        assert (tmp_path / "journal").read_text() == expected
