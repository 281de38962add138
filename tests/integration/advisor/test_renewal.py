"""The whole loop with both daemons: a better challenger replaces a poor champion, a broken one is rolled back."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.advisor.conftest import T0, job
from tests.integration.hub.bundles import write

from gpuwaste.advice.predict.bundle import Registry
from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.events.event_store import EventStore
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.lone_advisor import LoneAdvisor, spooled
from gpuwaste.testing.lone_hub import LoneHub

pytestmark = pytest.mark.long

FAILING = ("daemon", "bin", "sys", "games")  # users of every Debian
GOOD = ("man", "lp", "mail", "news")
RULE = {"renew": True, "min_outcomes": 40, "min_users": 6, "compare_every_s": 1.0}
HISTORY = 6  # ended jobs of each user before the first submission
ROUNDS = 10  # submissions of each user that both models judge


def run(number: int, user: str, token: str = "") -> JobRecord:
    """Return an ended run of a user, who fails always or never."""
    at = T0 + 100 * number
    return JobRecord(
        "gw", number, at, printed_id=str(number), user=user, name="train", account="proj", partition="gpu",
        time_limit_s=3600, req_tres="cpu=1,mem=1G,node=1", alloc_tres="cpu=1,mem=1G,node=1", n_nodes=1, cpus=1,
        start=at + 5, end=at + 65, elapsed_s=60, state="FAILED" if user in FAILING else "COMPLETED",
        verdict_id=token,
    )  # fmt: skip


class Loop:
    """Hub, advisor and their registry; time passes by stopping the hub and telling it how jobs ended."""

    def __init__(self, hub: LoneHub, advisor: LoneAdvisor) -> None:
        self.hub, self.advisor = hub, advisor
        self.registry = Registry(advisor.models)
        self._runs = 1000
        hub.common = {"models_dir": str(advisor.models)}
        hub.models = advisor.renews = RULE
        advisor.advisor = {"shadow_cpu_pct": 100.0}

    def tell(self, records: list[JobRecord]) -> None:
        """Put runs into the store while the hub is down."""
        (self.hub.directory / "state").mkdir(parents=True, exist_ok=True)
        store = HubStore.open(self.hub.directory / "state" / "hub.duckdb", SystemClock())
        upsert_jobs(store, records)
        store.close()

    def start(self) -> None:
        """Start the hub, then the advisor, and wait for its history."""
        self.hub.start()
        self.advisor.hub_url = self.hub.url
        self.advisor.start()
        self.advisor.wait_fresh()

    def submit(self) -> None:
        """Have every user submit some jobs, then stop both and tell the hub how the jobs ended."""
        tokens = [(user, self.advisor.ask(job(user=user))["id"]) for _ in range(ROUNDS) for user in (*FAILING, *GOOD)]
        waiting = "gpuwaste_advisor_outbox_verdicts"
        wait_until(
            lambda: not spooled(self.advisor.state / "spool") and not self.advisor.metric(waiting), 60, "shipping"
        )
        assert self.advisor.kill(signal.SIGTERM) == 0
        self.hub.stop()
        first, self._runs = self._runs, self._runs + len(tokens)
        self.tell([run(first + n, user, token) for n, (user, token) in enumerate(tokens)])

    def champion(self) -> str:
        """Return the name of the model in use."""
        found = self.registry.champion()
        return "" if found is None else found.name

    def wait_champion(self, name: str) -> None:
        """Wait until the hub has changed the model in use."""
        wait_until(
            lambda: self.champion() == name, 120, f"{name} to be in use", lambda: self.hub.log.read_text()[-800:]
        )

    def told(self) -> list[tuple[str, str]]:
        """Return kind and subject of the events of models; the hub is stopped for that."""
        self.hub.stop()
        store = HubStore.open(self.hub.directory / "state" / "hub.duckdb", SystemClock())
        rows = EventStore(store, SystemClock()).told_since(("model.promoted", "model.rolled_back"), 0, 99)
        store.close()
        return [(row["kind"], row["subject"]) for row in rows]


@pytest.fixture
def loop(hub: LoneHub, advisor: LoneAdvisor) -> Iterator[Loop]:
    """Give every user a history."""
    found = Loop(hub, advisor)
    users = (*FAILING, *GOOD)
    found.tell([run(10 + HISTORY * place + n, user) for place, user in enumerate(users) for n in range(HISTORY)])
    yield found
    hub.stop()
    advisor.stop()


def test_the_loop_closes(loop: Loop, place: Path) -> None:
    """Poor champion, good challenger: promoted by rule. A broken one that a person promotes: rolled back by rule."""
    models = loop.advisor.models
    write(models, "poor", 0.0)
    write(models, "good", -3.0, {"user_fail_all": 6.0})
    write(models, "broken", 3.0, {"user_fail_all": -6.0})
    loop.registry.promote("poor")
    loop.registry.challenge("good")
    loop.start()
    loop.submit()
    loop.start()
    loop.wait_champion("good")
    assert loop.registry.challenger() is None
    wait_until(lambda: "model-loaded: model loaded: good" in loop.advisor.said, 60, "the advisor to follow")
    loop.registry.promote("broken")
    wait_until(lambda: "model-loaded: model loaded: broken" in loop.advisor.said, 60, "the advisor to follow")
    loop.submit()
    loop.start()
    loop.wait_champion("good")
    assert loop.told() == [("model.promoted", "model/good"), ("model.rolled_back", "model/good")]
    assert (place / "models" / "broken").is_dir()
