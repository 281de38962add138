"""Has jobstats' own code write the summary of a run: `jobstats_writer.py CHECKOUT < case.json`.

The case has the run (start, end, gpus) and what Prometheus answers to each of jobstats' queries, by the name that
jobstats gives the figure. Its HTTP client is replaced; nothing else of jobstats is.
"""

import json
import re
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

_METRICS = {
    "total_memory": "cgroup_memory_total_bytes",
    "used_memory": "cgroup_memory_rss_bytes",
    "total_time": "cgroup_cpu_total_seconds",
    "cpus": "cgroup_cpus",
    "gpu_total_memory": "nvidia_gpu_memory_total_bytes",
    "gpu_used_memory": "nvidia_gpu_memory_used_bytes",
    "gpu_utilization": "nvidia_gpu_duty_cycle",
}


def main() -> None:
    """Print AdminComment as jobstats' script for slurmctld's epilog sets it."""
    case = json.load(sys.stdin)
    sys.path.insert(0, sys.argv[1])
    client = ModuleType("requests")
    client.get = lambda _url, parameters: SimpleNamespace(json=lambda: answer(case, parameters["query"]))  # type: ignore[attr-defined]
    sys.modules["requests"] = client
    from jobstats import Jobstats  # type: ignore[import-not-found]  # noqa: PLC0415 the checkout's

    Jobstats.slurm_version, Jobstats.sluid = "24.11.5", None  # what it would ask sacct for
    run = {name: case[name] for name in ("start", "end", "gpus")}
    stats = Jobstats(
        jobid="7",
        jobidraw="7",
        cluster="gw",
        prom_server="http://prometheus",
        force_recalc=True,
        json_or_base64=True,
        **run,
    )
    print("JS1:" + stats.report_job_json(encode=True))  # noqa: T201 the result


def answer(case: dict[str, Any], query: str) -> dict[str, Any]:
    """Return Prometheus' answer to one of jobstats' queries: texts, exact where they are whole numbers."""
    name = next(name for name, metric in _METRICS.items() if re.search(rf"\b{metric}\b", query))
    result = []
    for node, figures in case["nodes"].items():
        found = figures.get(name)
        for gpu, text in found.items() if isinstance(found, dict) else [(None, found)]:
            if text is not None:
                labels = {"instance": f"{node}:9445"} | ({} if gpu is None else {"minor_number": gpu})
                result.append({"metric": labels, "value": [case["end"], text]})
    return {"status": "success", "data": {"result": result}}


if __name__ == "__main__":
    main()
