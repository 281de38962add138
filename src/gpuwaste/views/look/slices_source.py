"""The slices of a folder as one source of history."""

from collections.abc import Iterator, Mapping
from itertools import count

from gpuwaste.core.errors import ParseError
from gpuwaste.core.text import decoded
from gpuwaste.jobs.importers.history_source import PAGE_B, RawPage
from gpuwaste.jobs.importers.history_store import Resume
from gpuwaste.slurm.accounting.sacct_file import cut_pages
from gpuwaste.slurm.formats.log_file import read_lines
from gpuwaste.views.look.folder import LookFolder


class SlicesSource:
    """The jobs of all slices, the earliest slice first: the last row of a run is the newest.

    `damaged` has a line on each slice of which a part cannot be read.
    """

    kind = "sacct"
    size: int | None = None

    def __init__(self, folder: LookFolder, cluster: str, start: int) -> None:
        """Find the columns; slices that end before `start` (UTC seconds) are left out. Raises UsageError."""
        self.cluster = cluster
        self.key = f"{self.kind}:{folder.accounting}"
        self.damaged: list[str] = []
        self._slices = [one for one in folder.slices() if one.end > start]
        self._columns, self._delimiter, header = folder.columns()
        self.context: Mapping[str, str] = {
            "cluster": cluster,
            "columns": ",".join(self._columns),
            "delimiter": decoded(self._delimiter),
            "zone": "UTC",
            "header": decoded(header.rstrip(b"\n")),
        }

    def pages(self, _resume: Resume | None) -> Iterator[RawPage]:
        """Yield the pages of each slice."""
        numbers = count(1)
        for one in self._slices:
            try:
                for cut in cut_pages(read_lines(one.path), self._columns, self._delimiter, PAGE_B):
                    yield RawPage(
                        number=next(numbers),
                        place=f"{self.kind}:{one.path}",
                        data=cut.data,
                        position=one.start,
                        until=one.end,
                        mark=one.end,
                        line=cut.line,
                    )
            except ParseError as error:
                self.damaged.append(str(error))
