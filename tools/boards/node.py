"""The board of one node: what its GPUs do, who holds them, and how its agent is."""

from typing import Final

from tools.boards.panels import Board, Query

_IN: Final = 'cluster=~"$cluster", node="$node"'
# An agent's own metrics have no label node: its instance is that of the series that have.
_OF_AGENT: Final = (
    '* on (cluster, instance) group_left () (max by (cluster, instance) (gpuwaste_gpu_info{node="$node"}))'
)
_INDEX: Final = '* on (uuid) group_left (index) (max by (uuid, index) (gpuwaste_gpu_info{node="$node"}))'


def board() -> str:
    """Return the board as JSON."""
    made = Board("gpuwaste: node", "gpuwaste-node", "The GPUs of one node and its agent.")
    made.choice("cluster", "label_values(gpuwaste_build_info, cluster)", "Cluster")
    made.choice("node", 'label_values(gpuwaste_gpu_info{cluster=~"$cluster"}, node)', "Node", several=False)
    _holders(made)
    _gpus(made)
    _agent(made)
    return made.text()


def _holders(board: Board) -> None:
    board.row("Who holds what")
    board.table(
        "Jobs on the GPUs",
        Query(f"gpuwaste_gpu_job_info{{{_IN}}}"),
        "Where the agent knows it from, and how sure it is. gpuwaste job ID tells the rest to who may read it.",
        hide=("Value", "cluster", "node"),
        width=12,
    )
    board.table(
        "GPUs",
        Query(f"gpuwaste_gpu_info{{{_IN}}}"),
        "By NVML's index; minor is the number in /dev/nvidiaN.",
        hide=("Value", "cluster", "node"),
        width=12,
    )


def _gpus(board: Board) -> None:
    board.row("GPUs")
    board.lines(
        "Utilization",
        "percentunit",
        Query(f"gpuwaste_gpu_utilization_ratio{{{_IN}}} {_INDEX}", "{{index}}"),
        about="Share of the time in which the GPU ran anything. A MIG instance has none.",
    )
    board.lines(
        "Busy multiprocessors",
        "percentunit",
        Query(f"gpuwaste_gpu_sm_ratio{{{_IN}}} {_INDEX}", "{{index}}"),
        about="Hopper and later. High utilization with few busy multiprocessors is a GPU that waits.",
    )
    board.lines(
        "Memory in use",
        "bytes",
        Query(f"gpuwaste_gpu_memory_used_bytes{{{_IN}}} {_INDEX}", "{{index}}"),
        about="Of the whole GPU or the MIG instance.",
    )
    board.lines(
        "Power",
        "watt",
        Query(f"gpuwaste_gpu_power_watts{{{_IN}}} {_INDEX}", "{{index}}"),
        about="100 percent utilization at little more than idle power is a hang.",
    )
    board.lines(
        "GPUs held, by use",
        "none",
        Query(f"node:gpuwaste_gpus_held:rate5m{{{_IN}}}", "{{use}}"),
        about="Mean of five minutes.",
        stacked=True,
    )
    board.lines(
        "Processes of the holding job",
        "none",
        Query(f"gpuwaste_gpu_processes{{{_IN}}} {_INDEX}", "{{index}}"),
        about="0 is a GPU that is held and that no process of its job has opened.",
    )
    board.lines(
        "Energy, by the hour",
        "joule",
        Query(f"increase(gpuwaste_gpu_energy_joules_total{{{_IN}}}[1h]) {_INDEX}", "{{index}}"),
        about="Of the hour before each point.",
    )
    board.lines(
        "Xid errors, by the hour",
        "none",
        Query(f"increase(gpuwaste_gpu_xid_errors_total{{{_IN}}}[1h])", "{{uuid}} Xid {{xid}}"),
        about="Critical ones.",
    )
    board.table(
        "Health",
        Query(f"gpuwaste_gpu_healthy{{{_IN}}}"),
        "0: lost, or with an Xid of health_xids.",
        hide=("cluster", "node"),
    )


def _agent(board: Board) -> None:
    board.row("The agent")
    own = 'cluster=~"$cluster"'
    board.lines(
        "Collectors: time of a reading",
        "s",
        Query(f"gpuwaste_agent_collector_duration_seconds{{{own}}} {_OF_AGENT}", "{{collector}}"),
        about="The last reading of each.",
        width=6,
    )
    board.lines(
        "Collectors and sinks that work",
        "none",
        Query(f"gpuwaste_agent_collector_success{{{own}}} {_OF_AGENT}", "{{collector}}"),
        Query(f"gpuwaste_agent_sink_success{{{own}}} {_OF_AGENT}", "{{sink}}"),
        about="1: the last reading, or the last writing, succeeded.",
        width=6,
    )
    board.lines(
        "Age of the newest sample",
        "s",
        Query(f"gpuwaste_agent_sample_lag_seconds{{{own}}} {_OF_AGENT}", "age"),
        Query(f"gpuwaste_agent_interval_seconds{{{own}}} {_OF_AGENT}", "interval"),
        about="Above a few intervals the agent hangs.",
        width=6,
    )
    board.lines(
        "Rows that wait",
        "none",
        Query(f"gpuwaste_agent_outbox_rows{{{own}}} {_OF_AGENT}", "rows"),
        about="What the hub has not acknowledged; it should fall to 0 with each shipment.",
        width=6,
    )
    board.lines(
        "Samples",
        "ops",
        Query(f"rate(gpuwaste_agent_samples_total{{{own}}}[5m]) {_OF_AGENT}", "taken"),
        Query(
            f"sum by (cluster, instance) (rate(gpuwaste_agent_unattributed_samples_total{{{own}}}[5m])) {_OF_AGENT}",
            "in doubt",
        ),
        Query(f"rate(gpuwaste_agent_missed_ticks_total{{{own}}}[5m]) {_OF_AGENT}", "missed ticks"),
        about="A second. In doubt: sources disagree whose the GPU is.",
        width=12,
    )
    board.lines(
        "Room for its state",
        "bytes",
        Query(f"gpuwaste_state_free_bytes{{{own}}} {_OF_AGENT}", "free"),
        about="On the file system of state_dir.",
        width=6,
    )
    board.lines(
        "Clock",
        "s",
        Query(f"abs(gpuwaste_clock_seconds{{{own}}} - timestamp(gpuwaste_clock_seconds{{{own}}})) {_OF_AGENT}", "off"),
        about="How far the node's clock is from Prometheus' own.",
        width=6,
    )
