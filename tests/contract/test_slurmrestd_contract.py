"""The same real jobs read through sacct and through slurmrestd are the same runs."""

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.rest_jobs import parse_page
from gpuwaste.slurm.accounting.sacct_rows import BadRow
from gpuwaste.slurm.clients.command_client import CommandClient
from gpuwaste.slurm.clients.rest_client import VERSIONS, RestClient
from gpuwaste.slurm.clients.rest_http import RestError, RestServer, TokenError
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.job_mix import ODD_NAMES, run_job_mix
from gpuwaste.testing.rest_differences import allowed, fields_of

pytestmark = [pytest.mark.core, pytest.mark.cluster]
JOBS = 200


def token(cluster: LoopbackCluster, folder: Path, user: str, lifespan_s: int = 600) -> str:
    path = folder / f"token-{user}"
    path.touch(0o600)
    path.write_text(f"SLURM_JWT={cluster.jwt_token(user, lifespan_s)}\n")
    return str(path)


def clients(cluster: LoopbackCluster, folder: Path, user: str = "gpuwaste") -> tuple[CommandClient, RestClient]:
    commands = CommandClient(slurm_conf=cluster.env()["SLURM_CONF"])
    return commands, RestClient(commands, RestServer(cluster.slurmrestd_url, token(cluster, folder, user)))


def by_key(rows: Iterable[JobRecord | BadRow], ids: set[int]) -> dict[tuple[RunKey, int], JobRecord]:
    found = list(rows)
    assert not [row for row in found if isinstance(row, BadRow)]
    chosen = [row for row in found if isinstance(row, JobRecord) and row.job_id in ids]
    runs = {(run.run_key, run.submit): run for run in chosen}
    assert len(runs) == len(chosen), "a run came twice"
    return runs


def test_a_mix_of_jobs_is_read_alike_both_ways(cluster: LoopbackCluster, tmp_path: Path) -> None:
    """Every field of every run is equal but for the list in rest_differences; then the same from the raw pages."""
    cluster.reset()
    mix = run_job_mix(cluster, JOBS, seed=int.from_bytes(os.urandom(2)))
    commands, rest = clients(cluster, tmp_path)
    window, ids = (mix.start - 1, mix.end + 60), set(mix.ids)

    told: dict[tuple[RunKey, int], JobRecord] = {}

    def alike() -> bool:
        """Tell whether both name the same runs and nothing changes: slurmdbd learns of ends a moment later."""
        nonlocal told
        before, told = told, by_key(rest.accounting(*window), ids)
        return told == before and set(told) == set(by_key(commands.accounting(*window), ids))

    wait_until(alike, 60, "both ways to name the same runs", poll_s=2.0)
    seen = by_key(commands.accounting(*window), ids)
    assert set(told) == set(seen)
    wrong = {
        run.printed_id: [
            (name, value, expected[name]) for name, value in fields_of(run).items() if value != expected[name]
        ]
        for key, run in told.items()
        if fields_of(run) != (expected := fields_of(seen[key]) | allowed(seen[key], run))
    }
    assert not wrong
    pages = [row for page in rest.pages(*window) for row in parse_page(page, rest.cluster_name())]
    assert by_key(pages, ids) == told
    _check_variety(seen)


def _check_variety(runs: dict[tuple[RunKey, int], JobRecord]) -> None:
    """Check that the mix has what it promises, so that equal records mean something."""
    states = Counter(run.state for run in runs.values())
    assert {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "REQUEUED"} <= set(states)
    assert len(runs) >= JOBS * 0.9
    found = list(runs.values())
    assert {run.user for run in found} == {"alice", "bob", "carol"}
    assert {run.account for run in found} == {"proj1", "proj2"}
    kinds = {
        "array task": [run for run in found if run.array_task_id is not None],
        "later het component": [run for run in found if run.het_offset == 1],
        "several GPUs": [run for run in found if (run.gpus or 0) > 1],
        "two nodes": [run for run in found if run.n_nodes == 2],
        "never started": [run for run in found if run.start is None],
        "suspended": [run for run in found if run.suspended_s > 0],
        "signal": [run for run in found if run.exit_signal],
        "exit code": [run for run in found if (run.exit_code or 0) > 1],
        "interactive": [run for run in found if run.interactive],
        "memory": [run for run in found if (run.max_rss_b or 0) > 150 * 1024**2],
        "odd name": [run for run in found if run.name in ODD_NAMES],
    }
    assert not [kind for kind, members in kinds.items() if not members]


def test_a_waiting_and_a_running_job_are_told_alike(cluster: LoopbackCluster, tmp_path: Path) -> None:
    """What a waiting job, an array and a het job ask for is the same from scontrol and from slurmrestd."""
    cluster.reset()
    commands, rest = clients(cluster, tmp_path)
    single = cluster.sbatch("true", hold=True, gres="gpu:a100:2", n=3, mem="1500M", time=30, job_name="sweep é")
    array = cluster.sbatch("true", "carol", hold=True, array="0-8:2%2", exclusive=True)
    het = int(
        cluster.run(
            ["sbatch", "--parsable", "-H", "-n1", "--gres=gpu:1", ":", "-n2", "-pcpu"], "bob", stdin="#!/bin/sh\ntrue\n"
        ).stdout
    )
    for job, count in ((single, 1), (array, 1), (het, 2)):
        asked = commands.request(job)
        assert len(asked) == count
        assert rest.request(job) == asked
    (request,) = rest.request(single)
    assert (request.gpus, request.gpu_type, request.cpus, request.time_limit_s) == (2, "a100", 3, 1800)
    assert (request.mem_b, request.name, request.user) == (1500 * 1024**2, "sweep é", "alice")
    assert rest.request(99_999_999) == commands.request(99_999_999) == []
    cluster.cancel_jobs()


def test_a_running_job_is_told_by_what_it_asked_for(cluster: LoopbackCluster, tmp_path: Path) -> None:
    """22.05's scontrol tells what an exclusive job holds; slurmrestd, and later scontrol, what it asked for."""
    cluster.reset()
    commands, rest = clients(cluster, tmp_path)
    job = cluster.sbatch("sleep 60", exclusive=True, gres="gpu:4", nodelist="gpu1")
    cluster.wait_job(job, "RUNNING")
    (asked,), (held,) = rest.request(job), commands.request(job)
    assert (asked.cpus, asked.gpus, held.gpus) == (1, 4, 4)
    assert held.cpus == (16 if cluster.release == (22, 5) else 1)
    cluster.cancel_jobs()


def test_the_real_server_s_refusals_are_clear(cluster: LoopbackCluster, tmp_path: Path) -> None:
    """An old token, a forged one, none, and a server that was stopped."""
    _, rest = clients(cluster, tmp_path)
    file = Path(rest.server.token_file)
    list(rest.accounting(1_700_000_000, 1_700_000_060))
    assert rest.version == next(one for one in VERSIONS if one in cluster.slurmrestd_versions())
    good = file.read_text()
    file.write_text(good.strip()[:-6] + "AAAAAA")
    clear = cluster.release < (26, 5)  # later ones do not say why slurmdbd lets nobody in
    with pytest.raises(TokenError if clear else RestError, match=r"the token is rejected|rejects the token\)$"):
        list(rest.accounting(1_700_000_000, 1_700_000_060))
    file.write_text(cluster.jwt_token("gpuwaste", -10))
    with pytest.raises(TokenError, match="the token has expired"):
        rest.request(1)
    with pytest.raises(TokenError, match="slurmrestd requires a token"):
        RestClient(rest.commands, RestServer(cluster.slurmrestd_url)).request(1)
    with pytest.raises(RestError, match="has no /"):
        RestClient(rest.commands, RestServer(cluster.slurmrestd_url, token(cluster, tmp_path, "bob")))._get(
            "none", "x", {}
        )
