"""The board of a cluster's waste: what GPUs do now, what the last day's jobs wasted, how gpuwaste itself is."""

from typing import Final

from tools.boards.panels import Board, Query

_IN: Final = 'cluster=~"$cluster"'
_HOURS: Final = "suffix:GPU-h"


def board() -> str:
    """Return the board as JSON."""
    made = Board("gpuwaste: cluster", "gpuwaste-cluster", "Waste of GPUs in a cluster. No panel shows a user's name.")
    made.choice("cluster", "label_values(gpuwaste_build_info, cluster)", "Cluster")
    _now(made)
    _day(made)
    _machine(made)
    _where(made)
    _itself(made)
    return made.text()


def _now(board: Board) -> None:
    board.row("Now")
    board.number(
        "GPUs",
        "none",
        Query(f'count(gpuwaste_gpu_info{{{_IN}, mig_instance=""}})'),
        "GPUs that agents see, whole ones.",
    )
    board.number(
        "Held by jobs",
        "none",
        Query(f"sum(cluster:gpuwaste_gpus_held:rate5m{{{_IN}}})"),
        "GPUs and MIG instances that jobs hold, mean of five minutes.",
    )
    board.number(
        "Idle while held",
        "percentunit",
        Query(f"avg(cluster:gpuwaste_idle:ratio_rate1h{{{_IN}}})"),
        "Of the measured GPU-time of the last hour that jobs held, the part at 0 percent.",
        bad_from=0.5,
    )
    board.number(
        "Wasted, last 24 h",
        "percentunit",
        Query(f"avg(cluster:gpuwaste_day_wasted:ratio{{{_IN}}})"),
        "As gpuwaste report counts it: untouched GPUs, and idle times of a minute and more.",
        bad_from=0.5,
    )
    board.number(
        "Not known, last 24 h",
        "percentunit",
        Query(f"avg(cluster:gpuwaste_day_unknown:ratio{{{_IN}}})"),
        "GPU-time of which nothing is known; it is never called waste.",
        bad_from=0.2,
    )
    board.number(
        "Agents silent",
        "none",
        Query(f'count(up{{{_IN}, job="gpuwaste-agent"}} == 0) or vector(0)'),
        "Nodes whose agent does not answer Prometheus.",
        bad_from=1,
    )
    board.lines(
        "GPUs that jobs hold, by use",
        "none",
        Query(f"sum by (use) (cluster:gpuwaste_gpus_held:rate5m{{{_IN}}})", "{{use}}"),
        about="Live, from the nodes. Idle is 0 percent; unknown is not idle.",
        stacked=True,
        width=12,
    )
    board.lines(
        "Idle share of held GPU-time",
        "percentunit",
        Query(f"cluster:gpuwaste_idle:ratio_rate1h{{{_IN}}}", "last hour {{cluster}}"),
        Query(f"cluster:gpuwaste_day_wasted:ratio{{{_IN}}}", "wasted, 24 h {{cluster}}"),
        about="Live by the hour, and the ledger's waste of the 24 hours before.",
        width=6,
    )
    board.lines(
        "Power of the GPUs",
        "watt",
        Query(f"cluster:gpuwaste_power_watts:sum{{{_IN}}}", "{{cluster}}"),
        about="What the GPUs draw, the idle ones included.",
        width=6,
    )


def _day(board: Board) -> None:
    board.row("The last 24 hours, by the ledger")
    board.lines(
        "GPU-hours by class",
        _HOURS,
        Query(f"sum by (use) (gpuwaste_hub_day_gpu_seconds{{{_IN}}}) / 3600", "{{use}}"),
        about="Of the 24 hours before each point. Pending is on its way from the nodes.",
        stacked=True,
    )
    board.bars(
        "Wasted GPU-hours by partition",
        _HOURS,
        Query(f"sort_desc(sum by (partition) (gpuwaste_hub_day_wasted_gpu_seconds{{{_IN}}})) / 3600", "{{partition}}"),
        "gpuwaste report --allusers names the users and jobs.",
    )
    board.bars(
        "Wasted share by partition",
        "percentunit",
        Query(f"sort_desc(partition:gpuwaste_day_wasted:ratio{{{_IN}}})", "{{partition}}"),
        "Of the partition's GPU-time.",
    )
    board.bars(
        "Wasted GPU-hours by account",
        _HOURS,
        Query(
            f'topk(15, sum by (account) (gpuwaste_hub_day_wasted_gpu_seconds{{{_IN}, account!=""}})) / 3600',
            "{{account}}",
        ),
        "Only where [hub] metrics_accounts is true.",
        width=12,
    )
    board.bars(
        "Wasted share by account",
        "percentunit",
        Query(f"topk(15, account:gpuwaste_day_wasted:ratio{{{_IN}}})", "{{account}}"),
        "Only where [hub] metrics_accounts is true.",
        width=12,
    )
    board.bars(
        "Energy of GPUs by partition",
        "joule",
        Query(f"sort_desc(sum by (partition) (gpuwaste_hub_day_gpu_energy_joules{{{_IN}}}))", "{{partition}}"),
        "As far as it was measured.",
        width=12,
    )
    board.bars(
        "Energy in wasted GPU-time by partition",
        "joule",
        Query(f"sort_desc(sum by (partition) (gpuwaste_hub_day_wasted_gpu_energy_joules{{{_IN}}}))", "{{partition}}"),
        "The part that is known to be wasted.",
        width=12,
    )


def _machine(board: Board) -> None:
    board.row("Where the machine's GPU-hours went, by the balance")
    board.lines(
        "GPUs by class",
        "none",
        Query(f"sum by (class) (rate(gpuwaste_hub_gpu_seconds_total{{{_IN}}}[6h]))", "{{class}}"),
        about="All GPUs, mean of six hours; free_* are those that were free although jobs waited, by cause. "
        "An hour is added two hours after its end. docs/how-to/balance.md explains the classes.",
        stacked=True,
        width=16,
    )
    board.bars(
        "Free although jobs waited, by cause",
        _HOURS,
        Query(
            f'sum by (class) (increase(gpuwaste_hub_gpu_seconds_total{{{_IN}, class=~"free_.+"}}[1d])) / 3600',
            "{{class}}",
        ),
        "Of the last day. The view balance names the jobs that kept most.",
    )


def _where(board: Board) -> None:
    board.row("Where to look")
    idle = f"max_over_time(gpuwaste_gpu_utilization_ratio{{{_IN}}}[30m]) == bool 0"
    board.table(
        "Jobs on GPUs that were idle for 30 minutes",
        Query(
            f"topk(30, sum by (cluster, node, jobid) (gpuwaste_gpu_job_info{{{_IN}}}"
            f" * on (uuid, node) group_left () ({idle})) > 0)"
        ),
        "Value: how many of the job's GPUs on this node. A job that has just started is in it too; gpuwaste job ID.",
        width=12,
    )
    board.bars(
        "Nodes with the most idle GPUs",
        "none",
        Query(f'topk(15, node:gpuwaste_gpus_held:rate5m{{{_IN}, use="idle"}} > 0)', "{{node}}"),
        "GPUs that jobs hold and do not use, mean of five minutes.",
        width=6,
    )
    board.table(
        "GPUs known to be unusable",
        Query(f"gpuwaste_gpu_healthy{{{_IN}}} == 0"),
        "Lost to NVML, or with an Xid error of health_xids.",
        hide=("Value",),
        width=6,
    )


def _itself(board: Board) -> None:
    board.row("gpuwaste itself")
    board.table(
        "Alerts",
        Query(f'ALERTS{{{_IN}, alertname=~"Gpuwaste.*", alertstate="firing"}}'),
        "docs/reference/alerts.md says what to do.",
        hide=("Value", "alertstate"),
    )
    board.lines(
        "Verdicts",
        "ops",
        Query(f"sum by (action) (rate(gpuwaste_advisor_verdicts_total{{{_IN}}}[5m]))", "{{action}}"),
        about="What the advisor said, a second; what it would have said is in the label would_be.",
    )
    board.lines(
        "Advisor: time of an answer",
        "s",
        Query(
            f"histogram_quantile(0.99, sum by (le) (rate(gpuwaste_advisor_latency_seconds_bucket{{{_IN}}}[15m])))",
            "99 %",
        ),
        Query(
            f"histogram_quantile(0.5, sum by (le) (rate(gpuwaste_advisor_latency_seconds_bucket{{{_IN}}}[15m])))",
            "50 %",
        ),
        about="From the connection to the reply.",
    )
    board.lines(
        "Hub: rows a second",
        "ops",
        Query(f"sum by (result) (rate(gpuwaste_hub_rows_total{{{_IN}}}[15m]))", "{{result}}"),
        about="Hours rows, by what became of them.",
    )
    board.lines(
        "Hub: 95 % of requests within",
        "s",
        Query(
            "histogram_quantile(0.95, sum by (le, route)"
            f' (rate(gpuwaste_hub_request_seconds_bucket{{{_IN}, route!="other"}}[15m])))',
            "{{route}}",
        ),
        about="By route.",
    )
    board.lines(
        "How old",
        "s",
        Query(f"gpuwaste_hub_accounting_lag_seconds{{{_IN}}}", "accounting"),
        Query(f"gpuwaste_advisor_history_age_seconds{{{_IN}}}", "advisor's history {{instance}}"),
        about="The newest accounting that the hub has read, and the newest history that an advisor knows.",
    )
    board.lines(
        "Rows and verdicts that wait",
        "none",
        Query(f"sum(gpuwaste_agent_outbox_rows{{{_IN}}})", "rows of all nodes"),
        Query(f"sum(gpuwaste_advisor_outbox_verdicts{{{_IN}}})", "verdicts"),
        about="What the hub has not acknowledged yet.",
        width=12,
    )
    board.lines(
        "Room for the hub's store",
        "bytes",
        Query(f'gpuwaste_state_free_bytes{{{_IN}, job="gpuwaste-hub"}}', "free"),
        Query(f"gpuwaste_hub_store_bytes{{{_IN}}}", "store"),
        about="The store's files, and what is left on their file system.",
        width=12,
    )
