"""AdvisorWatch: what changes while the advisor serves, checked on the feed's thread and swapped on the loop's."""

import threading
from pathlib import Path
from typing import Final

from gpuwaste.act.campaigns.assignment import CampaignsInUse
from gpuwaste.advice.policy.expected_waits import WaitTable
from gpuwaste.advice.policy.policy_loading import load_policies
from gpuwaste.advice.policy.policy_set import PolicySet
from gpuwaste.advice.policy.size_table import SizeTable
from gpuwaste.advisor.advisor_history import AdvisorHistory, boot_history_by
from gpuwaste.advisor.advisor_models import AdvisorModels
from gpuwaste.advisor.advisor_ports import AdvisorPorts
from gpuwaste.advisor.history_feed import Feed, SlowTurn, Turn
from gpuwaste.advisor.submit_server import Server
from gpuwaste.advisor.uid_lookup import Users
from gpuwaste.advisor.verdict_judge import BudgetCounts, Judge
from gpuwaste.core import log_event
from gpuwaste.core.codec import convert
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.parts import Part, Parts, Reloads
from gpuwaste.core.worker import Bus
from gpuwaste.ledger.right_size.size_types import SizeTableAnswer
from gpuwaste.net.hub_client import SCORE_PATH, SIZE_TABLE_PATH, WAITS_PATH
from gpuwaste.plan.plan_document import WaitTableAnswer
from gpuwaste.slurm.site.site_defaults import SiteDefaults

WAITS_EVERY_S: Final = 60
SIZES_EVERY_S: Final = 900
_SWAP_S: Final = 0.01  # between two checks whether the loop has taken another history
_POLICIES: Final = log_event.info("policies-in-force: {count} policies in force: {hash}")
_POLICIES_REJECTED: Final = log_event.error(
    "policies-not-reloaded: cannot reload policies, the loaded ones stay in force: {error}",
    "`gpuwaste policy check` prints the same error: fix the file, then reload.",
)
_RULE: Final = log_event.info("under-use-rule: the hub's rule of under-use is now {rule}; job history is read again")


class PolicyReload(Part):
    """Reloads the policies of the directory."""

    def __init__(self, parts: Parts) -> None:
        self._directory = Path(parts.get(Config).advisor.policies_dir)
        self._judge, self._users = parts.get(Judge), parts.get(Users)
        self._call = parts.get(Server).call
        self._users.with_groups = self._judge.adviser.policies.uses_groups

    @property
    def reloads(self) -> Reloads:
        """The key of the policies' directory."""
        keys = ("advisor.policies_dir",)
        return {keys: lambda c: setattr(self, "_directory", Path(c.advisor.policies_dir))}

    def reload(self) -> None:
        """Reload the policies, on any thread; those in force stay if the new ones cannot be used."""
        try:
            policies = load_policies(self._directory)
        except GpuwasteError as error:
            _POLICIES_REJECTED.log(error=error)
        else:
            self._call(lambda: self._use(policies))

    def _use(self, policies: PolicySet) -> None:
        self._judge.advise_by(policies=policies)
        if policies.uses_groups and not self._users.with_groups:
            self._users.with_groups = True
            self._users.forget()
        _POLICIES.log(count=len(policies.in_force), hash=policies.hash[:12])


class AdvisorWatch(Part):
    """Checks models, partitions, scores, waits and the under-use rule."""

    def __init__(self, parts: Parts) -> None:
        self._ports = parts.get(AdvisorPorts)
        self._judge, self._models = parts.get(Judge), parts.get(AdvisorModels)
        self._history, self._feed = parts.get(AdvisorHistory), parts.get(Feed)
        self._accounts, self._call = parts.get(BudgetCounts), parts.get(Server).call
        self._waits_due_us = self._sizes_due_us = 0
        parts.get(Server).between(self._history.learn)
        bus = parts.get(Bus)
        campaigns = parts.get(CampaignsInUse)
        bus.subscribe(Turn, lambda _: campaigns.refresh())
        bus.subscribe(Turn, lambda _: self._look_at_models())
        bus.subscribe(Turn, lambda _: self._look_at_rule())
        bus.subscribe(SlowTurn, lambda _: self._look_at_partitions())
        bus.subscribe(SlowTurn, lambda _: self._look_at_scores())
        bus.subscribe(Turn, lambda _: self._look_at_waits())
        bus.subscribe(Turn, lambda _: self._look_at_sizes())

    def _look_at_models(self) -> None:
        """Load another champion or challenger here; the loop swaps it in one step."""
        if self._models.champion.refresh():
            self._call(self._predict_anew)
        if self._models.trial.refresh():
            self._call(lambda: self._models.try_out(self._judge.shadow))

    def _predict_anew(self) -> None:
        """Advise by the current model and history."""
        self._judge.advise_by(predictor=self._models.predictor())
        self._models.try_out(self._judge.shadow)

    def _look_at_partitions(self) -> None:
        slurm = self._ports.slurm
        site = SiteDefaults.of(slurm.partitions(), slurm.config())
        self._call(lambda: self._judge.advise_by(site=site))

    def _look_at_scores(self) -> None:
        """Fetch from the hub how often the policies' warnings and rejects were right."""
        standing = self._ports.hub.get(SCORE_PATH).get("standing")
        found: dict[str, tuple[float, int]] = {}
        for name, row in standing.items() if isinstance(standing, dict) else ():
            if isinstance(row, dict) and isinstance(row.get("precision"), int | float) and type(row.get("n")) is int:
                found[str(name)] = (float(row["precision"]), row["n"])
        self._call(lambda: setattr(self._accounts, "standing", found))

    def _look_at_waits(self) -> None:
        """Fetch from the hub how long jobs wait, if a policy in force prints expected starts."""
        now_us = self._ports.clock.mono_us()
        wanted = any(policy.expected_start for policy in self._judge.adviser.policies.in_force)
        if not wanted or now_us < self._waits_due_us:
            return
        self._waits_due_us = now_us + WAITS_EVERY_S * 1_000_000
        answer = convert(self._ports.hub.get(WAITS_PATH), WaitTableAnswer, "the hub's waits")
        waits = WaitTable(answer.at, tuple(answer.rows))
        self._call(lambda: self._judge.advise_by(waits=waits))

    def _look_at_sizes(self) -> None:
        """Fetch from the hub which smaller requests past runs would have fitted, if a policy in force prints them."""
        now_us = self._ports.clock.mono_us()
        wanted = any(policy.right_size for policy in self._judge.adviser.policies.in_force)
        if not wanted or now_us < self._sizes_due_us:
            return
        self._sizes_due_us = now_us + SIZES_EVERY_S * 1_000_000
        answer = convert(self._ports.hub.get(SIZE_TABLE_PATH), SizeTableAnswer, "the hub's right sizes")
        sizes = SizeTable(tuple(answer.rows))
        self._call(lambda: self._judge.advise_by(sizes=sizes))

    def _look_at_rule(self) -> None:
        """Reload the history if the hub counts the use of GPUs by another rule than the history."""
        health, history, ports = self._feed.health, self._history, self._ports
        if health is None or (under_use := health.under_use) == history.follower.state.under_use:
            return
        fresh = boot_history_by(ports.hub, ports.state_dir, ports.cluster, under_use)
        swapped = threading.Event()

        def swap() -> None:
            history.follower = fresh
            self._feed.follow(fresh)
            swapped.set()
            self._predict_anew()
            _RULE.log(rule=under_use.text)

        self._call(swap)
        while not swapped.is_set() and not ports.clock.wait(self._feed.worker.stopping, _SWAP_S):
            pass
