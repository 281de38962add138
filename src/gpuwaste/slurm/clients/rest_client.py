"""RestClient: the SlurmClient that reads accounting and single jobs from slurmrestd.

The rest of the protocol uses the commands, see ComposedClient.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gpuwaste.core import log_event
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.rest_jobs import records
from gpuwaste.slurm.accounting.sacct_rows import BadRow
from gpuwaste.slurm.clients.client import ComposedClient
from gpuwaste.slurm.clients.rest_http import LateError, RestError, RestServer, TokenError, TooLargeError
from gpuwaste.slurm.clients.slurmctld_jobs import parse_requests
from gpuwaste.slurm.submit.job_request import JobRequest

_NARROWED: Final = log_event.info("accounting-window-reduced: {error}: window of {width} s instead of {asked} s")
VERSIONS: Final = (*(f"v0.0.{minor}" for minor in range(44, 37, -1)), "v0.0.45")
"""API versions of this client, the best first: Slurm 22.05 serves up to v0.0.38, 24.11 v0.0.40 to 42, 26.05 42 to 45.

v0.0.45 of Slurm 26.05 is last: it leaves `shared` of a job empty, which shows whether its nodes are exclusive.
"""

_NO_SUCH_URL: Final = 404
_NO_SUCH_JOB: Final = 2017  # ESLURM_INVALID_JOB_ID
_FIRST_WINDOW_S: Final = 6 * HOUR_S
_LONGEST_WINDOW_S: Final = 30 * DAY_S
_SHORTEST_WINDOW_S: Final = 60
_FULL_B: Final = 32 * 1024**2
_SPARSE_B: Final = 4 * 1024**2
_EARLIEST: Final = DAY_S  # slurmrestd does not accept earlier times


@dataclass(slots=True)
class RestClient(ComposedClient):
    """`server` answers for accounting and jobs, `commands` for all else; `cluster` "": `commands` give its name.

    The cluster is always named to slurmdbd, which would otherwise return the jobs of all its clusters. The API version
    is the newest that both sides know, found by the first request. `rpcs` counts the requests to slurmrestd.
    """

    server: RestServer
    rpcs: Counter[str] = field(default_factory=Counter)
    version: str = ""  # of the API, "" before the first request

    def accounting(self, start: int, end: int) -> Iterator[JobRecord | BadRow]:
        """Yield each run that overlaps [start, end] once, though it may be in several pages."""
        open_runs: set[tuple[int, int, int | None]] = set()
        cluster = self.cluster_name()
        for page_end, _, items in self._pages(start, end):
            seen: set[tuple[int, int, int | None]] = set()
            for row in records(items, cluster):
                if isinstance(row, JobRecord):
                    key = (row.job_id, row.submit, row.start)
                    if row.end is None or row.end >= page_end:
                        seen.add(key)  # only such a run is in the next page again
                    if key in open_runs:
                        continue
                yield row
            open_runs = seen

    def pages(self, start: int, end: int) -> Iterator[bytes]:
        """Yield the raw answers for [start, end], each for a window of its own; a run can be in several of them.

        Each is complete and holds no error; parse_page reads it, now or later. A window whose answer is too large or
        too late is requested in halves.
        """
        for _, page, _ in self._pages(start, end):
            yield page

    def request(self, job_id: int) -> list[JobRequest]:
        """Return the request of a job in slurmctld's memory."""
        try:
            data, _ = self._get("slurm", f"job/{job_id}", {})
        except RestError as error:
            if _NO_SUCH_JOB in error.numbers:
                return []
            raise
        return parse_requests(data)

    def _pages(self, start: int, end: int) -> Iterator[tuple[int, bytes, list[Any]]]:
        """Yield the end of each window with its answer and the jobs in it."""
        begin, width = max(start, _EARLIEST), _FIRST_WINDOW_S
        cluster = self.cluster_name()
        while begin <= end:
            stop = min(begin + width, end)
            query = {"start_time": f"uts{begin}", "end_time": f"uts{stop}", "cluster": cluster}
            try:
                page, items = self._get("slurmdb", "jobs", query)
            except (TooLargeError, LateError) as error:
                if stop - begin <= _SHORTEST_WINDOW_S:
                    raise
                width = max((stop - begin) // 2, _SHORTEST_WINDOW_S)
                _NARROWED.log(error=error, width=width, asked=stop - begin)
                continue
            yield stop, page, items
            if len(page) > _FULL_B:
                width = max(width // 2, _SHORTEST_WINDOW_S)
            elif len(page) < _SPARSE_B:
                width = min(width * 2, _LONGEST_WINDOW_S)
            if stop >= end:
                return
            begin = stop

    def _get(self, part: str, path: str, query: Mapping[str, str | int]) -> tuple[bytes, list[Any]]:
        """Request in the version that both sides know. Raises RestError naming the versions where there is none."""
        for version in (self.version,) if self.version else VERSIONS:
            self.rpcs[part] += 1
            try:
                found = self.server.get_jobs(f"/{part}/{version}/{path}", query)
            except RestError as error:
                if error.status == _NO_SUCH_URL and not error.numbers:
                    continue
                if error.status and not isinstance(error, TokenError):
                    self.version = version
                raise
            self.version = version
            return found
        self.version = ""  # a slurmrestd of another version may have taken its place
        raise RestError(
            f"{self.server.url}: has no /{part} of {min(VERSIONS)} to {max(VERSIONS)}: "
            "is its plugin loaded (slurmrestd -s)?",
            _NO_SUCH_URL,
        )
