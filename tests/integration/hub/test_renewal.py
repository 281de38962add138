"""Models renew themselves by outcomes: promoted when better, rolled back when worse, told with why, off by default."""

import contextlib
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.integration.hub.bundles import promote, write
from tests.integration.hub.rig import Rig, running_hub
from tests.unit.advisor.verdicts import verdict

from gpuwaste.act.events.event_service import EventService
from gpuwaste.advice.predict.bundle import BASELINE, Registry
from gpuwaste.advice.predict.manifest import read_bundle
from gpuwaste.advice.predict.prediction_service import Predictions
from gpuwaste.advice.renewal.renewal import Renewal
from gpuwaste.advice.verdicts.verdict_store import VerdictStore
from gpuwaste.core.advice_config import ModelsConfig
from gpuwaste.core.errors import ConfigError
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.testing.clocks import ShiftedClock
from gpuwaste.testing.hub_rows import HOUR, record
from gpuwaste.testing.webhook_receiver import webhook_receiver

ALICE, OPER = 1001, 1004
RULE = ModelsConfig(renew=True, min_outcomes=100, min_users=10)
YARDSTICK = read_bundle(BASELINE)[2]
HOOK = '[webhook]\nurl = "{url}"\nnetworks = ["127.0.0.0/8"]\n'


@contextlib.contextmanager
def hub(directory: Path, models: ModelsConfig | None = RULE, **more: Any) -> Iterator[Rig]:
    with running_hub(directory, clock=ShiftedClock(HOUR + 86400), models=models, **more) as rig:
        rig.hub.get(ClusterFacts).refresh()
        rig.hub.get(ClusterFacts).cluster()
        yield rig


class Site:
    """Submissions of some users of whose jobs every third fails, each scored by the champion and in shadow."""

    def __init__(self, rig: Rig, seed: int = 1) -> None:
        self.rig = rig
        self.models = rig.directory / "models"
        self._random = random.Random(seed)
        self._job = 0

    def judge(
        self, champion: str, beside: Mapping[str, float], *, own: float = 0.0, jobs: int = 300, users: int = 25
    ) -> None:
        """Add verdicts and outcomes; a skill is how much a probability follows what came: 0 is chance, -1 against."""
        verdicts, runs = [], []
        for _ in range(jobs):
            self._job += 1
            failed = self._random.random() < 1 / 3
            user = f"u{self._random.randrange(users)}"
            skills = {"": own, **beside}
            p = {name: self._p(skill, came=failed) for name, skill in skills.items()}
            said = verdict(
                self._job, user=user, model_hash=champion, p={"failure": p.pop("")}, triggers={},
                at_utc_us=self.rig.clock.utc_s() * 1_000_000, action="pass", would_be="pass",
                shadow={name: {"failure": value} for name, value in p.items()},
            )  # fmt: skip
            verdicts.append(said)
            state = "FAILED" if failed else "COMPLETED"
            runs.append(replace(record(self._job, user, state=state), verdict_id=said.id))
        VerdictStore(self.rig.store, self.rig.clock).add(verdicts, "ctl")
        upsert_jobs(self.rig.store, runs)

    def champion(self) -> str:
        found = Registry(self.models).champion()
        assert found is not None
        return found.name

    def events(self, kinds: str = "model.*") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        after, following = -1, 0
        while following > after:
            after = following
            answer = self.rig.get(OPER, f"/v1/events?kinds={kinds}&after={after}")
            assert answer.status == 200, answer.body
            found += answer.json["events"]
            following = answer.json["next"]
        return found

    def trial(self) -> Any:
        answer = self.rig.get(OPER, "/v1/models/trial")
        assert answer.status == 200, answer.body
        return answer.json

    def _p(self, skill: float, *, came: bool) -> float:
        chance = self._random.random()
        toward = float(came) if skill >= 0 else 1.0 - float(came)
        return round(0.02 + 0.96 * (abs(skill) * toward + (1 - abs(skill)) * chance), 3)


def on_trial(site: Site, name: str = "new") -> tuple[str, str]:
    """Promote `old`, put another bundle on trial, and return both hashes."""
    old = promote(site.models, "old", 0.3)
    write(site.models, name, 0.4, created_utc=HOUR)
    return old, Registry(site.models).challenge(name).hash


def test_a_better_challenger_is_promoted_and_told_with_its_evidence(tmp_path: Path) -> None:
    """The link moves, the trial ends, the event has both figures, the reason and the one before; it is told once."""
    with hub(tmp_path) as rig:
        site = Site(rig)
        old, new = on_trial(site)
        site.judge(old, {new: 0.5, YARDSTICK: 0.0})
        found = rig.hub.get(Renewal).step()
        assert found is not None
        assert (found.changed, site.champion(), Registry(site.models).challenger()) == ("promoted", "new", None)
        (event,) = site.events("model.promoted")
        data = event["data"]
        assert (data["name"], data["model_hash"], data["before"], data["by"]) == ("new", new, old, "rule")
        (shown,) = data["evidence"]
        assert (shown["target"], shown["jobs"], shown["users"]) == ("failure", 300, 25)
        assert shown["other_ap"] > shown["model_ap"] + 0.2
        assert shown["low"] > 0.1
        assert shown["better"] == 1.0
        assert "300 jobs of 25 users" in data["reason"]
        rig.hub.get(Predictions).step()
        rig.hub.get(Renewal).step()
        rig.hub.get(EventService).look()
        assert len(site.events("model.promoted")) == 1
        metrics = {s.labels["change"]: s.value for f in families(rig) if f == "model_changes" for s in families(rig)[f]}
        assert metrics == {"promoted": 1, "rolled back": 0}


def families(rig: Rig) -> dict[str, list[Any]]:
    text = rig.metrics.text().decode()
    found = {family.name: family.samples for family in text_string_to_metric_families(text)}
    return {name.removeprefix("gpuwaste_hub_"): samples for name, samples in found.items()}


@pytest.mark.parametrize(
    ("rule", "skill", "jobs", "users", "words"),
    [
        (replace(RULE, renew=False), 0.5, 300, 25, "failure: average precision"),
        (RULE, 0.0, 300, 25, "of the draws, 90 % needed"),
        (RULE, -0.5, 300, 25, "of the draws, 90 % needed"),
        (RULE, 0.5, 90, 25, "not enough outcomes: failure 90 of 100"),
        (RULE, 0.5, 300, 5, "not enough outcomes: failure of 5 users, 10 needed"),
    ],
    ids=["off", "no better", "worse", "few jobs", "few users"],
)
def test_otherwise_the_champion_stays(  # noqa: PLR0917 a case
    tmp_path: Path, rule: ModelsConfig, skill: float, jobs: int, users: int, words: str
) -> None:
    """Off as installed, by chance, worse, or on too little: nothing moves, and the document says why."""
    with hub(tmp_path, rule) as rig:
        site = Site(rig)
        old, new = on_trial(site)
        site.judge(old, {new: skill}, jobs=jobs, users=users)
        rig.hub.get(Renewal).step()
        assert (site.champion(), site.events("model.promoted")) == ("old", [])
        document = site.trial()
        assert words in document["decision"]
        assert (document["champion"]["name"], document["challenger"]["name"]) == ("old", "new")
        assert document["renew"] is rule.renew


def test_as_installed_the_rule_is_off(tmp_path: Path) -> None:
    """A hub without a section [models] compares and changes nothing."""
    with hub(tmp_path, None) as rig:
        site = Site(rig)
        old, new = on_trial(site)
        site.judge(old, {new: 0.9}, jobs=1100)
        assert rig.hub.get(Renewal).step() is not None
        assert site.champion() == "old"


def test_one_user_cannot_push_a_model_into_use(tmp_path: Path) -> None:
    """Ten thousand jobs of one user that only the challenger gets right, and it is no better for anybody else."""
    with hub(tmp_path) as rig:
        site = Site(rig)
        old, new = on_trial(site)
        site.judge(old, {new: -0.4}, own=0.4, jobs=300)
        site.judge(old, {new: 1.0}, own=-1.0, jobs=3000, users=1)
        rig.hub.get(Renewal).step()
        assert site.champion() == "old"


def test_a_champion_that_is_worse_than_the_baseline_is_rolled_back(tmp_path: Path) -> None:
    """The one before is back, told with the evidence; what came before the change of model does not count."""
    with hub(tmp_path) as rig:
        site = Site(rig)
        old, new = on_trial(site)
        site.judge(old, {new: 0.5, YARDSTICK: 0.2})
        rig.hub.get(Renewal).step()
        site.judge(new, {YARDSTICK: 0.2}, own=-0.3, jobs=90)
        rig.hub.get(Renewal).step()
        assert site.champion() == "new"
        site.judge(new, {YARDSTICK: 0.2}, own=-0.3)
        found = rig.hub.get(Renewal).step()
        assert found is not None
        assert (found.changed, site.champion()) == ("rolled back", "old")
        (event,) = site.events("model.rolled_back")
        data = event["data"]
        assert (data["name"], data["model_hash"], data["before"], data["by"]) == ("old", old, new, "rule")
        assert "the baseline's" in data["reason"]
        rig.hub.get(Predictions).step()
        rig.hub.get(EventService).look()
        assert [event["type"] for event in site.events("model.promoted,model.rolled_back")] == [
            "gpuwaste.model.promoted", "gpuwaste.model.rolled_back",
        ]  # fmt: skip
        assert rig.hub.get(Renewal).step().changed == ""  # type: ignore[union-attr]


def test_without_a_champion_before_it_stays_and_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """There is nothing to go back to."""
    with hub(tmp_path) as rig:
        site = Site(rig)
        only = promote(site.models, "only", 0.3)
        site.judge(only, {YARDSTICK: 0.3}, own=-0.3)
        for _ in range(2):
            rig.hub.get(Renewal).step()
        assert site.champion() == "only"
        assert sum("no model was in use before it" in record.getMessage() for record in caplog.records) == 1


def test_training_and_drift_are_told_once(tmp_path: Path) -> None:
    """A bundle that is new in the registry, with its role; a champion whose probabilities are off."""
    with hub(tmp_path, replace(RULE, renew=False)) as rig:
        site = Site(rig)
        old, new = on_trial(site)
        site.judge(old, {new: 0.0}, own=-1.0)
        for _ in range(2):
            rig.hub.get(Renewal).step()
        told = {event["data"]["name"]: event["data"] for event in site.events("model.trained")}
        assert {name: one["role"] for name, one in told.items()} == {"old": "champion", "new": "challenger"}
        assert told["new"]["model_hash"] == new
        (drift,) = site.events("model.drift")
        assert (drift["data"]["target"], drift["data"]["jobs"], drift["data"]["model_hash"]) == ("failure", 300, old)
        assert drift["data"]["ece"] > 0.5
    with hub(tmp_path, replace(RULE, renew=False)) as rig:
        rig.hub.get(Renewal).step()
        assert len(Site(rig).events("model.trained,model.drift")) == 3


def test_a_person_s_promotion_is_told_too_and_not_as_the_rule_s(tmp_path: Path) -> None:
    """By the source of events that watches the model in use, where there is an outlet; by whom is in it."""
    outlets = tmp_path / "outlets.d"
    outlets.mkdir()
    with webhook_receiver() as receiver:
        (outlets / "hook.toml").write_text(HOOK.format(url=receiver.url))
        with hub(tmp_path, hub_keys={"outlets_dir": str(outlets)}) as rig:
            site = Site(rig)
            rig.hub.get(Predictions).step()
            for name in ("one", "two"):
                promote(site.models, name, 0.3)
                rig.hub.get(Predictions).step()
                rig.hub.get(EventService).look()
                rig.hub.get(EventService).look()
            assert [(e["data"]["name"], e["data"]["by"]) for e in site.events("model.promoted")] == [
                ("one", "person"), ("two", "person"),
            ]  # fmt: skip


def test_only_operators_see_the_trial(tmp_path: Path) -> None:
    """Users get 403, and before the first comparison operators 503."""
    with hub(tmp_path) as rig:
        assert rig.get(ALICE, "/v1/models/trial").status == 403
        assert rig.get(OPER, "/v1/models/trial").status == 503
        assert rig.hub.get(Renewal).step() is not None
        assert rig.get(ALICE, "/v1/models/trial").status == 403
        assert Site(rig).trial()["decision"] == "no model in use"


def test_a_registry_that_cannot_be_used_is_said_and_changes_nothing(tmp_path: Path) -> None:
    """A challenger whose file was changed after it was put on trial: no comparison, the reason is in the answer."""
    with hub(tmp_path) as rig:
        site = Site(rig)
        old, new = on_trial(site)
        rig.hub.get(Renewal).step()
        site.judge(old, {new: 0.5})
        (site.models / "new" / "failure.onnx").write_bytes(b"another")
        assert rig.hub.get(Renewal).worker.turn() == 300
        assert site.champion() == "old"
        assert "its checksum is not the one" in site.trial()["error"]


def test_keys_that_make_no_rule_stop_the_hub(tmp_path: Path) -> None:
    """The hub does not start with them."""
    with pytest.raises(ConfigError, match=r"\[models\] .*min_users"), hub(tmp_path, replace(RULE, min_users=1)):
        pass
