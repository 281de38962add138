"""The advisor, the hub, predict, policy explain and policy replay decide alike on the same submission."""

import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import chdir
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from tests.integration.hub.five_askers import HASH, ME, PARTITIONS, POLICIES, SCRIPT, Drawn, draw, history
from tests.integration.hub.rig import Rig

from gpuwaste.advice.adviser import AdviceRequest, Adviser
from gpuwaste.advice.policy.policy_case import PolicyOutcome
from gpuwaste.advice.policy.policy_loading import load_policies
from gpuwaste.advice.policy.policy_set import PolicySet
from gpuwaste.advice.predict.bundle import BASELINE, Bundle, Registry, load_bundle
from gpuwaste.advice.predict.prediction_service import Predictions
from gpuwaste.advice.predict.prediction_types import PredictAnswer, PredictDocument
from gpuwaste.advisor.verdict_judge import BudgetCounts, Judge, JudgedSubmission
from gpuwaste.cli.asking import PredictQuery, answer
from gpuwaste.cli.main import main
from gpuwaste.cli.policy_commands import decided
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.codec import convert
from gpuwaste.core.config import load_config
from gpuwaste.core.groups import unix_groups
from gpuwaste.core.scope import Scope
from gpuwaste.jobs.history.from_store import TableSnapshot
from gpuwaste.jobs.history.history_follower import Follower
from gpuwaste.jobs.history.history_replay import replay
from gpuwaste.jobs.history.job_table import JobTable
from gpuwaste.jobs.importers.accounting_importer import Importer
from gpuwaste.jobs.job_event import ScriptSays
from gpuwaste.jobs.verdict import TOLD
from gpuwaste.models.policy_backtest import PolicyReplay, ReplayPeriod
from gpuwaste.slurm.site.site_defaults import SiteDefaults

if TYPE_CHECKING:
    from gpuwaste.jobs.history.recall import Recall

REQUESTS: Final = 1000
WITH_MODEL: Final = 300  # a model's reasons take longer
OPERATOR: Final = Scope(user="oper", everything=True)
_AT_A_TIME: Final = 50
_SCRIPTS: Final[tuple[ScriptSays, ...]] = ("same", "changed", "unknown")


@dataclass
class Askers:
    """One history, one model, one set of policies, and everybody who decides by them."""

    hub: Rig
    policies: PolicySet
    site: SiteDefaults
    table: JobTable
    bundle: Bundle | None
    now: int
    config: Path

    @cached_property
    def replays(self) -> dict[ScriptSays, PolicyReplay]:
        """A replay that has come to now, for each belief about scripts."""
        questions = {says: ReplayPeriod(self.now, 1 << 40, says, self.site, unix_groups) for says in _SCRIPTS}
        return {says: PolicyReplay(self.table, self.policies, q, self.bundle) for says, q in questions.items()}

    @property
    def live(self) -> Any:
        """The hub's own state."""
        return self.hub.hub.get(Predictions)._live

    def advisor(self, drawn: Sequence[Drawn]) -> list[PolicyOutcome]:
        """Return the decisions of the advisor's judge on what a plugin sends; each day is a new one."""
        judge = Judge("gw", Adviser(self.policies, self.live._predictor, self.site), BudgetCounts(), SystemClock())
        submissions = []
        for one in drawn:
            desc = one.desc()
            request = desc.request(one.user, one.submit)
            groups = unix_groups(one.user) if self.policies.uses_groups else frozenset[str]()
            asked = AdviceRequest(request, groups=groups, script=desc.script_hash)
            submissions.append(JudgedSubmission(desc, asked, one.submit * 1_000_000, 0))
        return [decision for _, decision in judge.judge(submissions)]

    def hub_says(self, drawn: Sequence[Drawn]) -> list[PredictDocument]:
        """Return the hub's documents on the requests, as an operator sees them."""
        asked = [{n: v for n, v in vars_of(one).items() if v is not None} for one in drawn]
        body = json.dumps({"requests": asked}).encode()
        answered = self.hub.hub.get(Predictions).for_requests(OPERATOR, body)
        return convert(json.loads(json.dumps(answered.to_json())), PredictAnswer, "answer").predictions

    def predict(self, drawn: Sequence[Drawn]) -> list[PredictDocument]:
        """Return what `gpuwaste predict` prints, asked over the hub's socket: the caller's own requests alone."""
        return answer(load_config(self.config), PredictQuery(tuple(one.request() for one in drawn)), None, None)

    def replay(self, drawn: Sequence[Drawn]) -> list[PolicyOutcome]:
        """Return the decisions of a replay that believes of a script what is known here."""
        recall: Recall = self.live._follower.recall
        whole = {
            says: PolicyReplay(
                self.table, self.policies, ReplayPeriod(self.now, 1 << 40, says, self.site, unix_groups), self.bundle
            )
            for says in _SCRIPTS
        }
        return [whole[recall.script_says(d.user, d.request().name, HASH)].decide(d.request())[0] for d in drawn]


def vars_of(one: Drawn) -> dict[str, Any]:
    """Return the request's fields."""
    request = one.request()
    return {name: getattr(request, name) for name in request.__dataclass_fields__}


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Return the seed of all that is drawn: of the test, of GPUWASTE_TEST_SEED, or a new one, which is printed."""
    given = getattr(request, "param", None) or os.environ.get("GPUWASTE_TEST_SEED")
    found = int(given or random.SystemRandom().randrange(1_000_000))
    sys.stdout.write(f"GPUWASTE_TEST_SEED={found}\n")
    return found


@pytest.fixture(params=["history", "baseline"])
def askers(hub: Rig, request: pytest.FixtureRequest, tmp_path: Path, seed: int) -> Askers:
    """Give the hub a past of some users, policies of every kind, and a model or none."""
    hub.slurm.partition_list = PARTITIONS
    hub.hub.get(Importer).step()
    folder = hub.directory / "policies.d"
    folder.mkdir()
    for name, text in POLICIES.items():
        (folder / f"{name}.toml").write_text(text)
    bundle = None
    if request.param == "baseline":
        (hub.directory / "models").mkdir()
        registry = Registry(hub.directory / "models")
        registry.promote(registry.add(BASELINE))
        bundle = load_bundle(BASELINE)
    predictions, now = hub.hub.get(Predictions), int(time.time())
    predictions.step()
    random.seed(seed)
    table, jobs = history(random.Random(seed), now)
    live: Any = predictions._live
    live._follower = Follower(replay(table), "gw")
    live._follower.boot(TableSnapshot(table, 0))
    live._predictor = live.champion.predictor(live._follower)
    for job in jobs:
        if job.name == "train":
            live._follower.recall.learn_script(job.user, job.name, job.job_id, HASH)
        elif job.name == "mixed":
            live._follower.recall.learn_script(job.user, job.name, job.job_id, "00000000deadbeef")
    config = tmp_path / "gpuwaste.toml"
    config.write_text(
        f'[common]\nhub_url = "unix:{hub.socket}"\nslurm_conf = "/nonexistent"\nslurm_timeout_s = 0.2\n'
        f'[advisor]\npolicies_dir = "{folder}"\n'
    )
    return Askers(hub, load_policies(folder), SiteDefaults.of(PARTITIONS), table, bundle, now, config)


def _row(decision: PolicyOutcome) -> dict[str, Any]:
    names = ("policy", "mode", "action", "would_be", "held", "override", "time_min_s", "triggers")
    return {name: getattr(decision, name) for name in names}


def _of(document: PredictDocument) -> dict[str, Any]:
    return {name: getattr(document.policy, name) for name in ("policy", "mode", "action", "would_be", "lines")}


def _seen_all(seen: Counter[tuple[str, str, str]]) -> bool:
    """Tell whether the policies did all that they can: action, what it would be, why it is held back."""
    done = {("reject", "reject", ""), ("warn", "warn", ""), ("pass", "pass", "")} <= seen.keys()
    return done and {"shadow", "annotate", "override", "exempt"} <= {held for _, _, held in seen}


@pytest.mark.long
def test_five_askers_get_the_same_answer(askers: Askers) -> None:
    """1,000 random requests by history, 300 by a model: the same policy, action, lines and numbers, whoever asks.

    More are drawn until each way to hold an action back was among them.
    """
    rng = random.Random(random.random())
    count = REQUESTS if askers.bundle is None else WITH_MODEL
    seen: Counter[tuple[str, str, str]] = Counter()
    while seen.total() < count or (seen.total() < 5 * count and not _seen_all(seen)):
        part = [draw(rng, askers.now) for _ in range(_AT_A_TIME)]
        advised, told, replayed = askers.advisor(part), askers.hub_says(part), askers.replay(part)
        mine = [one for one in part if one.user == ME]
        printed = iter(askers.predict(mine) if mine else ())
        explained = [one.outcome for one in decided(askers.policies, told)]
        for one, a, h, e, r in zip(part, advised, told, explained, replayed, strict=True):
            assert one.desc().request(one.user, one.submit) == one.request(), one
            assert _of(h) == {**{n: getattr(a, n) for n in _of(h)}, "lines": list(a.lines)}, one
            assert {n: getattr(e, n) for n in (*_row(a), "lines")} == {**_row(a), "lines": a.lines}, one
            assert _row(r) == _row(a), one
            if one.user == ME:
                p = next(printed)
                assert p.targets == h.targets, one
                assert (p.policy and p.policy.action, p.policy and p.policy.lines) == (
                    a.action,
                    list(a.lines) if a.action in TOLD else [],
                ), one
            seen[a.action, a.would_be, a.held] += 1
    assert _seen_all(seen), seen


def test_whole_nodes_silence_gpus_for_all_five(askers: Askers) -> None:
    """The request that is warned of for its GPUs passes with --exclusive, or in a partition of whole nodes."""
    base = Drawn(
        "u1", askers.now + 86400, ("-J", "wide", "-p", "gpu", "-t", "600", "--gres=gpu:8"),
        {"name": "wide", "partition": "gpu", "time_limit": 600, "min_nodes": 1, "min_cpus": 1,
         "tres_per_node": "gres:gpu:8", "script": SCRIPT, "script_hash": HASH},
    )  # fmt: skip
    exclusive = replace(base, words=(*base.words, "--exclusive"), members={**base.members, "shared": 0})
    for one, gpus in ((base, True), (exclusive, False)):
        (advised,), (told,), (replayed,) = askers.advisor([one]), askers.hub_says([one]), askers.replay([one])
        (explained,) = (one.outcome for one in decided(askers.policies, [told]))
        assert ["gpus" in triggers for triggers in (advised.triggers, explained.triggers, replayed.triggers)] == [
            gpus
        ] * 3
        assert any("--gres" in line for line in ((told.policy and told.policy.lines) or ())) == gpus


def test_the_commands_print_what_sbatch_would(
    askers: Askers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`predict FILE` and `policy explain FILE`, as typed, for 20 submissions of the caller's own."""
    rng = random.Random(random.random())
    (tmp_path / "job.sh").write_text(SCRIPT)
    config = ["--config", str(askers.config)]
    for _ in range(20):
        one = replace(draw(rng, askers.now), user=ME)
        with chdir(tmp_path):
            assert main(["predict", "--json", *config, "--", *one.words, "job.sh"]) == 0
            (p,) = json.loads(capsys.readouterr().out)["predictions"]
            assert main(["policy", "explain", "--json", *config, "--", *one.words, "job.sh"]) == 0
            (e,) = json.loads(capsys.readouterr().out)["decisions"]
        for document in (p, e):
            (a,) = askers.advisor([replace(one, submit=document["request"]["submit"])])
            answered = document.get("policy", {})
            found = (e["action"], e["lines"]) if document is e else (answered["action"], answered["lines"])
            lines = list(a.lines) if document is e or a.action in TOLD else []
            assert found == (a.action, lines), one


@pytest.mark.parametrize("seed", [762794], indirect=True)
def test_explain_names_no_place_of_an_option(
    askers: Askers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line on GPUs that the command line asks for is in `policy explain` what sbatch says, without a place."""
    (tmp_path / "job.sh").write_text(SCRIPT)
    words = ["-J", "fine", "-A", "a2", "-p", "gpu", "--qos=low", "-n1", "--mem=64G", "--gres=gpu:8", "job.sh"]
    with chdir(tmp_path):
        assert main(["policy", "explain", "--json", "--config", str(askers.config), "--", *words]) == 0
    (explained,) = json.loads(capsys.readouterr().out)["decisions"]
    (used,) = [line for line in explained["lines"] if "such jobs" in line]
    assert used.endswith("of 8 GPUs")
