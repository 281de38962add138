"""Versions, windows and requests of the client, against a server on loopback."""

import itertools
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuwaste.core.errors import SlurmError
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.rest_jobs import parse_page
from gpuwaste.slurm.clients.rest_client import VERSIONS, RestClient
from gpuwaste.slurm.clients.rest_http import RestError, RestServer, TokenError
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.testing.fake_slurmrestd import UNKNOWN_URL, FakeAnswer, FakeRequest, FakeSlurmrestd

FIXTURES = Path(__file__).parents[2] / "fixtures" / "slurmrestd"
DAY = 86400
START = 1_700_000_000


def recorded(name: str) -> bytes:
    return lzma.decompress((FIXTURES / f"{name}.json.xz").read_bytes())


def serving(
    *versions: str, then: Callable[[FakeRequest], FakeAnswer] = lambda _: FakeAnswer()
) -> Callable[[FakeRequest], FakeAnswer]:
    return lambda asked: then(asked) if asked.path.split("/")[2] in versions else UNKNOWN_URL


def client(fake: FakeSlurmrestd, **options: Any) -> RestClient:
    return RestClient(FakeSlurm(), RestServer(fake.url, **options))


def job(job_id: int, begin: int, end: int) -> dict[str, Any]:
    return {"job_id": job_id, "cluster": "gw", "time": {"submission": begin, "start": begin, "end": end}}


def history(*jobs: dict[str, Any], pad: int = 0) -> Callable[[FakeRequest], FakeAnswer]:
    """Answer with the jobs that overlap the window, as slurmdbd does."""

    def answer(asked: FakeRequest) -> FakeAnswer:
        first, last = (int(asked.query[name].removeprefix("uts")) for name in ("start_time", "end_time"))
        found = [
            item
            for item in jobs
            if item["time"]["submission"] <= last and (not item["time"]["end"] or item["time"]["end"] >= first)
        ]
        return FakeAnswer(body=json.dumps({"jobs": found, "pad": "x" * pad * len(found)}).encode())

    return answer


def ids(subject: RestClient, start: int, end: int) -> list[int]:
    rows = list(subject.accounting(start, end))
    assert all(isinstance(row, JobRecord) for row in rows)
    return [row.job_id for row in rows if isinstance(row, JobRecord)]


@pytest.mark.parametrize(
    ("served", "chosen"),
    [
        (("v0.0.36", "v0.0.38"), "v0.0.38"),
        (("v0.0.40", "v0.0.42"), "v0.0.42"),
        (("v0.0.45", "v0.0.99"), "v0.0.45"),
        (("v0.0.44", "v0.0.45"), "v0.0.44"),
    ],
)
def test_the_newest_version_that_both_know_is_used(served: tuple[str, ...], chosen: str) -> None:
    """Found once: later questions go to it at once."""
    with FakeSlurmrestd(serving(*served)) as fake:
        subject = client(fake)
        assert subject.request(7) == []
        assert subject.version == chosen
        before = len(fake.asked)
        list(subject.accounting(START, START + 60))
        assert [asked.path for asked in fake.asked[before:]] == [f"/slurmdb/{chosen}/jobs"]


def test_no_version_in_common_is_said() -> None:
    """With the versions that this client knows; a slurmrestd that was changed is found again at the next question."""
    versions = ["v0.0.39"]

    def answer(asked: FakeRequest) -> FakeAnswer:
        return FakeAnswer() if asked.path.split("/")[2] in versions else UNKNOWN_URL

    with FakeSlurmrestd(answer) as fake:
        subject = client(fake)
        subject.request(7)
        versions[:] = ["v0.0.99"]
        with pytest.raises(RestError, match=rf"has no /slurm of {min(VERSIONS)} to {max(VERSIONS)}:"):
            subject.request(7)
        versions[:] = ["v0.0.42"]
        subject.request(7)
        assert subject.version == "v0.0.42"


def test_a_window_names_the_cluster_and_its_ends() -> None:
    """Without the cluster slurmdbd would tell the jobs of all that it keeps."""
    with FakeSlurmrestd(serving("v0.0.42")) as fake:
        list(client(fake).accounting(START, START + 60))
    assert fake.asked[-1].query == {"start_time": f"uts{START}", "end_time": f"uts{START + 60}", "cluster": "gw"}


def test_a_run_in_several_windows_comes_once() -> None:
    """A long run, one that is still going on, one at a window's edge: each once, in every order of windows."""
    jobs = [job(1, START, START + 9 * DAY), job(2, START + DAY, 0), job(3, START + 21600, START + 21600)]
    jobs += [job(10 + day, START + day * DAY, START + day * DAY + 60) for day in range(9)]
    with FakeSlurmrestd(serving("v0.0.42", then=history(*jobs))) as fake:
        found = ids(client(fake), START, START + 10 * DAY)
        pages = list(client(fake).pages(START, START + 10 * DAY))
    assert sorted(found) == sorted(item["job_id"] for item in jobs)
    assert len(pages) > 3
    assert {row.job_id for page in pages for row in parse_page(page, "gw") if isinstance(row, JobRecord)} == set(found)


def test_the_windows_leave_no_gap() -> None:
    """Each begins where the one before it ended; quiet times are read in ever longer ones."""
    with FakeSlurmrestd(serving("v0.0.42")) as fake:
        list(client(fake).pages(START, START + 400 * DAY))
    windows = [
        tuple(int(asked.query[name].removeprefix("uts")) for name in ("start_time", "end_time"))
        for asked in fake.asked
        if "/v0.0.42/" in asked.path
    ]
    assert (windows[0][0], windows[-1][1]) == (START, START + 400 * DAY)
    assert all(later[0] == earlier[1] for earlier, later in itertools.pairwise(windows))
    assert len(windows) < 25


def test_a_window_that_is_too_large_is_asked_for_in_halves() -> None:
    """Until it fits; nothing is lost. What does not fit in a minute is an error."""
    jobs = [job(index, START + index * 600, START + index * 600 + 1) for index in range(1, 31)]
    with FakeSlurmrestd(serving("v0.0.42", then=history(*jobs, pad=1000))) as fake:
        assert ids(client(fake, max_bytes=8000), START, START + 21600) == list(range(1, 31))
        with pytest.raises(SlurmError, match="more than 500 bytes"):
            ids(client(fake, max_bytes=500), START, START + 21600)


def test_a_refused_token_ends_it_at_once() -> None:
    """No version is tried after it."""
    with FakeSlurmrestd(lambda _: FakeAnswer(401, b"Authentication failure")) as fake:
        with pytest.raises(TokenError):
            list(client(fake).accounting(START, START + 60))
        assert len(fake.asked) == 1


def test_a_job_that_nobody_knows_is_an_empty_list() -> None:
    """22.05 says so with 500, 24.11 with 404; neither is a missing version."""
    error = json.dumps({"jobs": [], "errors": [{"error_number": 2017, "error": "Invalid job id specified"}]}).encode()
    for status in (500, 404):
        with FakeSlurmrestd(serving("v0.0.42", then=lambda _, status=status: FakeAnswer(status, error))) as fake:  # type: ignore[misc]
            assert client(fake).request(7) == []


def test_the_requests_of_an_array_and_of_a_het_job() -> None:
    """As 24.11 told them: one for an array that waits, one for each component."""
    names = {"/slurm/v0.0.42/job/21": "slurm_job_v0.0.42_array", "/slurm/v0.0.42/job/22": "slurm_job_v0.0.42_het"}
    with FakeSlurmrestd(serving("v0.0.42", then=lambda asked: FakeAnswer(body=recorded(names[asked.path])))) as fake:
        (array,) = client(fake).request(21)
        first, second = client(fake).request(22)
    assert (array.user, array.name, array.is_array, array.interactive) == ("alice", "sweep é", True, False)
    assert (array.gpus, array.gpu_type, array.mem_b, array.time_limit_s) == (2, "a100", 1500 * 1024**2, 1800)
    assert (first.gpus, first.cpus, second.gpus, second.cpus) == (1, 1, 0, 2)


def test_all_else_is_asked_of_the_commands() -> None:
    """The rest of the protocol is composed, not imitated."""
    with FakeSlurmrestd(lambda _: FakeAnswer()) as fake:
        subject = client(fake)
        assert subject.config() == subject.commands.config()
        assert (subject.cluster_name(), subject.jobs(), subject.job(1), subject.partitions()) == ("gw", [], [], [])
        assert (subject.nodes(), subject.admin_levels(), subject.coordinators()) == ([], {}, {})
        with pytest.raises(SlurmError):
            subject.device_list("gpu9")
        assert not fake.asked
