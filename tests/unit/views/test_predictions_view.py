"""View predictions: what verdicts predicted of run times, and what happened."""

from tests.unit.advisor.verdicts import verdict
from tests.unit.views.sites import fact

from gpuwaste.advice.verdicts.verdict_store import VerdictStore
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import FakeClock
from gpuwaste.testing.hub_rows import HOUR, record
from gpuwaste.views.view import look, view_named
from gpuwaste.views.view_query import ViewQuery, Window

NOW = HOUR + 86400
QUANTILES = {"walltime": {"0.5": 1000.0, "0.9": 2000.0}}


def test_predicted_times_are_scored_by_what_happened() -> None:
    """Runs of 900 s, 1800 s and 3000 s of one median and bound: one is within the median, two the bound."""
    clock = FakeClock(NOW)
    store = HubStore.open(":memory:", clock)
    said = [verdict(n, cluster="gw", quantiles=QUANTILES) for n in range(4)]
    VerdictStore(store, clock).add([*said[:3], verdict(9, cluster="gw", quantiles={})], "ctl")
    for number, ran in enumerate((900, 1800, 3000)):
        upsert_jobs(store, [record(number, "alice", end=HOUR + ran, verdict_id=said[number].id)])
    upsert_jobs(store, [record(8, "bob"), record(9, "bob", verdict_id=verdict(9, cluster="gw").id)])
    with store.reader() as db:
        found = look(view_named("predictions"), ViewQuery(db, Window(HOUR - 60, NOW, NOW))).document
    assert fact(found, "runs") == 3
    assert (fact(found, "below_q50_share"), fact(found, "below_q90_share")) == (1 / 3, 2 / 3)
    assert fact(found, "miss_share") == (100 + 800 + 2000) / (900 + 1800 + 3000)
    (chart,) = found.charts
    assert sum(sum(layer.counts) for layer in getattr(chart, "layers", ())) == 3
