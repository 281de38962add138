"""The parts of the product and the tests that show each on one release of Slurm."""

from dataclasses import dataclass
from typing import Final

from gpuwaste.core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Part:
    """One row of the table of releases: `tests` are selections of pytest, {release} in them is the release's name."""

    name: str
    shows: str
    tests: tuple[str, ...]
    workers: int = 1
    """How many clusters run at the same time."""

    def selections(self, release: str) -> list[str]:
        """Return the tests on a release."""
        return [test.replace("{release}", release) for test in self.tests]


PARTS: Final = (
    Part(
        "submit",
        "both submit plugins in slurmctld; advice and rejects at sbatch, srun, salloc; faults of the advisor",
        (
            "tests/system/test_matrix.py::test_release[{release}]",
            "tests/plugins/test_job_submit_cluster.py",
            "tests/plugins/test_job_submit_lua.py",
            "tests/contract/test_sbatch_contract.py",
            "tests/contract/test_sbatch_tres_contract.py",
            "tests/contract/test_sbatch_values_contract.py",
            "tests/contract/test_gpu_types_contract.py",
            "tests/contract/test_sbatch_components_contract.py",
            "tests/system/test_submit_advice.py",
            "tests/system/test_submit_faults.py",
            "tests/system/test_five_askers.py",
        ),
    ),
    Part(
        "attribution v1",
        "GPUs of jobs of all layouts, without constraints and with devices constrained by cgroup v1; AMD and Intel",
        (
            "tests/system/test_attribution.py::test_every_layout_is_right_or_unknown",
            "tests/system/test_attribution.py::test_shards_and_constrained_devices[constrain_devices]",
            "tests/system/test_gpu_vendors.py",
            "tests/system/test_capabilities.py",
            "tests/system/test_agent_faults.py",
        ),
    ),
    Part(
        "attribution v2",
        "devices constrained by cgroup v2 (BPF), shards; job cgroups named by SLUID where the release does so",
        ("tests/system/test_attribution.py::test_shards_and_constrained_devices[cgroup_v2]",),
    ),
    Part(
        "accounting",
        "sacct, its files and steps, rights by account; scontrol, hostlists, times, node states",
        (
            "tests/contract/test_slurm_contract.py",
            "tests/contract/test_accounting_details.py",
            "tests/contract/test_gpu_use_contract.py",
            "tests/contract/test_history_files.py",
            "tests/contract/test_hostlist_contract.py",
            "tests/contract/test_times_contract.py",
            "tests/contract/test_node_states.py",
            "tests/contract/test_machine_contract.py",
            "tests/system/test_cluster.py",
            "tests/system/test_history.py",
            "tests/system/test_history_stream.py",
            "tests/system/test_export.py",
        ),
    ),
    Part(
        "slurmrestd",
        "the same jobs through slurmrestd, in the newest API version that the release serves",
        (
            "tests/contract/test_slurmrestd_contract.py",
            "tests/contract/test_predict_contract.py",
            "tests/system/test_cluster.py::test_slurmrestd_answers_a_user_s_token",
        ),
    ),
    Part(
        "reports",
        "agents, hub, reports, current state, doctor, notices, rights of users, learning",
        (
            "tests/system/test_hub.py",
            "tests/system/test_now.py",
            "tests/system/test_privacy.py",
            "tests/system/test_two_clusters.py",
            "tests/system/test_notify.py",
            "tests/system/test_curves.py",
            "tests/system/test_doctor.py",
            "tests/system/test_learning.py",
        ),
    ),
    Part(
        "actions",
        "every kind of action, its programs, an actor killed with -9; the prolog's health gate",
        (
            "tests/system/test_actor.py",
            "tests/system/test_actor_faults.py",
            "tests/system/test_actor_killed.py",
            "tests/system/test_actor_programs.py",
            "tests/system/test_health_gate.py",
            "tests/system/test_ladder.py",
        ),
    ),
    Part(
        "simulator",
        "the Slurm model next to the slurmctld of the release: starts, fair share, priorities, reasons, plans",
        (
            "tests/system/test_engine.py",
            "tests/system/test_engine_given.py",
            "tests/system/test_fair_share.py",
            "tests/system/test_sprio.py",
            "tests/system/test_limit_reasons.py",
            "tests/system/test_plan.py",
            "tests/system/test_plan_holds.py",
        ),
    ),
    Part(
        "demo",
        "`make demo-all`: every statement of its reports is compared with what its jobs did",
        ("tests/system/test_demo.py",),
    ),
)

TURN: Final = Part(
    "turn",
    "some of each part, in ten minutes",
    (
        "tests/contract/test_slurm_contract.py",
        "tests/contract/test_slurmrestd_contract.py",
        "tests/contract/test_accounting_details.py",
        "tests/contract/test_gpu_use_contract.py",
        "tests/contract/test_history_files.py",
        "tests/contract/test_sbatch_components_contract.py",
        "tests/plugins/test_job_submit_cluster.py",
        "tests/system/test_attribution.py::test_every_layout_is_right_or_unknown",
        "tests/system/test_attribution.py::test_shards_and_constrained_devices[constrain_devices]",
        "tests/system/test_gpu_vendors.py",
        "tests/system/test_cluster.py",
        "tests/system/test_actor.py",
        "tests/system/test_engine_given.py",
        "tests/system/test_limit_reasons.py",
        "tests/system/test_plan.py",
        "tests/system/test_hub.py",
    ),
    workers=3,
)
"""What `make matrix-turn` runs on one newer release."""
TURN_ALONE: Final = Part(
    "turn",
    "attribution v2, alone",
    ("tests/system/test_attribution.py::test_shards_and_constrained_devices[cgroup_v2]",),
)
"""What the turn runs without workers: in their process namespaces slurmd refuses a cgroup with processes of others."""


def part(name: str) -> Part:
    """Return one part by name. Raises ConfigError."""
    for item in PARTS:
        if item.name == name:
            return item
    raise ConfigError(f"no part {name!r} in the matrix; there are: {', '.join(item.name for item in PARTS)}")
