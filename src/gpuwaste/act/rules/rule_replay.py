"""Replay: what a rule about idle GPUs would have done on history, judged by how each run went on.

Runs are not hit while they were kept (rule_keeps.py). The facts are those of live rules (query job_facts), as of each
instant; agents' data is read by the hour, or by the day if the hub has merged the hours. Budgets, quiet hours and
cooldown are left out: they delay steps.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gpuwaste.act.rules.rule_definition import Rule
from gpuwaste.act.rules.rule_keeps import AskedShare, asked_rows, honour_keeps
from gpuwaste.act.rules.rule_matching import EXEMPT_FACTS, exemption, subjects
from gpuwaste.act.rules.rule_rungs import delays_of, plans_of, replayed_ladders
from gpuwaste.act.rules.rule_types import ReplayDocument, ReplayRow, ReplayUser
from gpuwaste.core.bootstrap import BootstrapSample, interval
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.units import HOUR_S
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.store.database import Database

AFTERS_S: Final = (300, 600, 900, 1200, 1800, 2700, 3600, 5400, 7200, 10800, 14400)
IDLE: Final = "ledger.idle_s"
# As of an instant of the past:
NOT_KEPT: Final = frozenset({"ledger.hang_s", "ledger.cpu_cores", "ledger.idle_nodes", "ledger.idle_nodes_s"})
_USERS: Final = 20
_FEWEST: Final = 5  # fewer users give no interval


def replayed(  # noqa: PLR0917 what, and over which window
    db: Database,
    rule: Rule,
    cluster: str,
    start: int,
    end: int,
    settings: LedgerSettings,
    asked: AskedShare | None = None,
) -> ReplayDocument:
    """Return what a rule would have done between two instants, UTC seconds. Raises ConfigError, StoreError."""
    if rule.head.about != "running" or IDLE not in rule.names:
        raise ConfigError(f"{rule.name}: a replay needs {IDLE} in where or since, of a rule about running jobs")
    if lost := sorted(NOT_KEPT & set(rule.names)):
        raise ConfigError(f"{rule.name}: a replay has no {', '.join(lost)}: see what the rule records")
    afters = sorted({*AFTERS_S, *(step.after_s for step in rule.steps if step.after_s >= AFTERS_S[0])})
    window, plans = {"from": start, "to": end}, plans_of(rule)
    _find(db, cluster, window, sorted({*afters, *delays_of(plans)}), settings)
    _match(db, rule)
    keeps = honour_keeps(db, afters, rule)
    hits = db.rows("replay_hits", {"afters": afters})
    tails = {row["user"]: row for row in db.rows("replay_tails", {**window, "shortest": AFTERS_S[0]})}
    last = max(step.after_s for step in rule.steps)
    rows = [_row(after, [hit for hit in hits if hit["threshold_s"] == after], tails, rule) for after in afters]
    return ReplayDocument(
        name=rule.name,
        start=start,
        end=end,
        runs=_runs(db, cluster, window),
        idle_to_end=sum(row["runs"] for row in tails.values()),
        by_day_ratio=_by_day(db),
        rows=rows,
        keeps=keeps,
        asked=asked_rows(rows, rule, asked or AskedShare()),
        users=_users([hit for hit in hits if hit["threshold_s"] == max(last, AFTERS_S[0])]),
        ladders=tuple(replayed_ladders(db, plans)),
    )


def _find(
    db: Database, cluster: str, window: Mapping[str, int], afters: Sequence[int], settings: LedgerSettings
) -> None:
    """Create the stretches, the instants and their facts."""
    values = {**window, "cluster": cluster, "resident_ratio": settings.memory_resident_ratio, "shortest": afters[0]}
    db.run("replay_stretches", values)
    db.run("replay_moments", {**window, "afters": afters, "shortest": afters[0]})
    db.run("moments_create")
    db.run("replay_ledger", {"grace_s": settings.interactive_grace_s})
    db.run("job_facts")


def _match(db: Database, rule: Rule) -> None:
    """Create temp table matched: the places that the rule would have touched."""
    ledger = rule.exempt.coverage_below.value
    kept = f'AND "ledger.coverage" >= {ledger!r}' if ledger else ""
    if rule.exempt.waste:
        kept += ' AND "ledger.exempt_gpu_s" = 0'
    db.execute(
        f"CREATE OR REPLACE TEMP TABLE matched AS SELECT place FROM facts WHERE {rule.where.sql} {kept}"  # noqa: S608
    )
    columns = ", ".join(f'"{name}"' for name in EXEMPT_FACTS)
    db.execute(
        f"CREATE OR REPLACE TEMP TABLE owners AS SELECT min(place) AS place, {columns} FROM facts"  # noqa: S608
        f" SEMI JOIN matched USING (place) GROUP BY {columns}"
    )
    places = [row[0] for row in db.execute("SELECT place FROM owners").fetchall()]
    free = (*EXEMPT_FACTS, "ledger.exempt_gpu_s", "ledger.coverage")
    exempt = [one.place for one in subjects(db, "running", places, free) if exemption(rule, one)]
    if exempt:
        same = " AND ".join(f'f."{name}" IS NOT DISTINCT FROM o."{name}"' for name in EXEMPT_FACTS)
        db.execute(
            "DELETE FROM matched WHERE place IN ("  # noqa: S608 own names
            f"SELECT f.place FROM facts f JOIN owners o ON {same} WHERE o.place IN (SELECT unnest($exempt::BIGINT[])))",
            {"exempt": exempt},
        )


def _row(
    after: int, hits: Sequence[Mapping[str, Any]], tails: Mapping[str, Mapping[str, Any]], rule: Rule
) -> ReplayRow:
    jobs, judged, correct = (sum(hit[name] for hit in hits) for name in ("hits", "judged", "correct"))
    idle = sum(row["runs"] for row in tails.values())
    precision = correct / judged if judged else None
    recall = correct / idle if idle else None
    right = {hit["user"]: hit["correct"] for hit in hits}
    of_hits = [(float(hit["correct"]), float(hit["judged"])) for hit in hits if hit["judged"]]
    of_tails = [(float(right.get(user, 0)), float(row["runs"])) for user, row in tails.items()]
    sure, complete = _interval(of_hits, precision), _interval(of_tails, recall)
    return ReplayRow(
        after_s=after,
        step=", ".join(step.action for step in rule.steps if step.after_s == after),
        jobs=jobs,
        users=len(hits),
        judged=judged,
        wrong=judged - correct,
        precision=precision,
        precision_low=sure[0],
        precision_high=sure[1],
        recall=recall,
        recall_low=complete[0],
        recall_high=complete[1],
        freed_gpu_h=sum(hit["freed_s"] for hit in hits) / HOUR_S,
        lost_gpu_h=sum(hit["lost_s"] for hit in hits) / HOUR_S,
    )


def _interval(blocks: Sequence[tuple[float, float]], value: float | None) -> tuple[float | None, float | None]:
    """Return the 95 % interval of a share by a bootstrap over users, whose runs are alike; None if there is none."""
    found = None if value is None or len(blocks) < _FEWEST else interval(BootstrapSample(blocks=blocks), value)
    return (None, None) if found is None else found


def _users(hits: Sequence[Mapping[str, Any]]) -> list[ReplayUser]:
    ordered = sorted(hits, key=lambda hit: (-hit["hits"], hit["user"]))[:_USERS]
    return [
        ReplayUser(
            user=hit["user"],
            jobs=hit["hits"],
            wrong=hit["judged"] - hit["correct"],
            freed_gpu_h=hit["freed_s"] / HOUR_S,
        )
        for hit in ordered
    ]


def _runs(db: Database, cluster: str, window: Mapping[str, int]) -> int:
    return int(db.rows("replay_runs", {**window, "cluster": cluster})[0]["runs"])


def _by_day(db: Database) -> float:
    return float(db.rows("replay_by_day")[0]["ratio"])
