"""The Prometheus rules: promtool takes them, each alert is shown to fire and not to, and says what to do."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.integration.etc.promql import TARGET_LABELS, Known, faults, served, uses
from tools.reference.alerts import RULES, Alert, alerts, rules

from gpuwaste.cli.main import build_parser

ROOT = Path(__file__).parents[3]
PROMETHEUS = ROOT / "etc" / "prometheus"
TESTS = sorted((Path(__file__).parent / "alerts").glob("*.test.yml"))
ALERTS = sorted(alerts(), key=lambda alert: alert.name)
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")


def promtool(*words: str | Path) -> str:
    """Run promtool and return what it says; fails where it is not content."""
    done = subprocess.run(["promtool", *map(str, words)], capture_output=True, text=True, check=False, cwd=PROMETHEUS)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def known() -> dict[str, Known]:
    """Return what is served and what the rules record."""
    recorded = {}
    for _, rule in rules():
        if "record" in rule:
            by = {label for group in re.findall(r"by \(([^)]*)\)", rule["expr"]) for label in group.split(", ")}
            recorded[rule["record"]] = Known("gauge", frozenset(by) | {"cluster"})
    return served() | recorded


@needs_promtool
def test_promtool_takes_every_rule() -> None:
    """`promtool check rules` finds no fault in any file, and as many rules as the files hold."""
    said = promtool("check", "rules", *sorted(RULES.glob("*.yml")))
    assert sum(map(int, re.findall(r"(\d+) rules found", said))) == len(list(rules()))


@needs_promtool
@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name)
def test_the_rules_do_what_their_tests_say(path: Path) -> None:
    """`promtool test rules`: the alert fires for what is bad, no other does, and it does not for what is near it."""
    assert "SUCCESS" in promtool("test", "rules", path)


def test_each_rules_file_is_tested_and_no_other() -> None:
    """Each file of rules has a file of tests of its own name, and one of days where need be, that load it alone."""
    assert sorted({_subject(path) for path in TESTS}) == sorted(path.stem for path in RULES.glob("*.yml"))
    for path in TESTS:
        (loaded,) = yaml.safe_load(path.read_text(encoding="utf-8"))["rule_files"]
        assert (path.parent / loaded).resolve() == RULES / f"{_subject(path)}.yml"


def _subject(path: Path) -> str:
    return path.name.removesuffix(".test.yml").removesuffix(".days")


def basis(expr: str) -> set[str]:
    """Return the served metrics that an expression stands on, through what is recorded."""
    recorded = {rule["record"]: rule["expr"] for _, rule in rules() if "record" in rule}
    found = {use.name for use in uses(expr)}
    return {base for name in found for base in (basis(recorded[name]) if name in recorded else {name})}


def cases(name: str) -> list[dict[str, Any]]:
    """Return the tests of an alert."""
    found = [test for path in TESTS for test in yaml.safe_load(path.read_text(encoding="utf-8"))["tests"]]
    return [test for test in found if test["name"] == name]


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_each_alert_is_shown_to_fire_and_not_to(alert: Alert) -> None:
    """Its tests expect it to fire for something, and have series of the same metrics for which it does not."""
    tests = cases(alert.name)
    expected = [e for test in tests for e in test["promql_expr_test"]]
    fired = {sample["labels"] for e in expected for sample in e["exp_samples"]}
    assert fired, "no test expects it to fire"
    assert all(f'alertname="{alert.name}"' in labels and f'severity="{alert.severity}"' in labels for labels in fired)
    series = [s["series"] for test in tests for s in test["input_series"]]
    quiet = [s for s in series if re.search(r'="good\d?"', s)]
    silent_at_first = any(not e["exp_samples"] for e in expected)
    assert quiet or silent_at_first, "no test shows it silent"
    assert not any(re.search(r'="good\d?"', labels) for labels in fired)
    if quiet:
        assert {text.partition("{")[0] for text in quiet} & (basis(alert.expr) | {"up"})


def test_every_recording_rule_is_shown_with_figures() -> None:
    """The tests name each recorded series with values worked out by hand."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in TESTS)
    for _, rule in rules():
        if "record" in rule:
            assert f"labels: '{rule['record']}{{" in text, rule["record"]


@pytest.mark.parametrize("rule", [rule for _, rule in rules()], ids=lambda rule: rule.get("alert") or rule["record"])
def test_a_rule_asks_only_for_what_is_served(rule: dict[str, Any]) -> None:
    """Each metric is served, with the labels it is chosen by; rates are of counters, and these stand in rates."""
    assert list(uses(rule["expr"])) or "up{" in rule["expr"]
    assert faults(rule["expr"], known()) == []


def test_a_wrong_metric_would_be_found() -> None:
    """An unknown name, a label that is not there, a rate of a gauge and a bare counter are each told."""
    for expr, fault in (
        ("gpuwaste_gpu_util", "nobody serves it"),
        ('gpuwaste_gpu_power_watts{gpu="1"} > 1', "has no label gpu"),
        ("sum(rate(gpuwaste_gpu_power_watts[5m]))", "is a gauge, and stands in rate"),
        ("gpuwaste_agent_samples_total > 1", "is a counter, and stands in no rate"),
        ("rate(gpuwaste_hub_request_seconds[5m])", "nobody serves it"),
    ):
        assert fault in " ".join(faults(expr, served())), expr


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_each_alert_tells_what_to_do(alert: Alert) -> None:
    """It has a summary, a description, an action and the anchor of its section; commands in it are commands."""
    told = alert.annotations
    assert set(told) == {"summary", "description", "action", "runbook_url"}
    page, _, anchor = told["runbook_url"].partition("#")
    assert f"\n## {alert.name}\n" in (ROOT / page).read_text(encoding="utf-8")
    assert anchor == alert.name.lower()
    assert alert.severity in {"critical", "warning", "info"}
    for command in re.findall(r"`gpuwaste ([^`]+)`", told["action"] + told["description"]):
        words = shlex.split(command.replace("ID", "7"))
        build_parser().parse_args(words)


def test_no_alert_pages_for_a_users_waste() -> None:
    """What is about waste is info; and no label of an alert or a recorded series can hold a user's name."""
    assert {alert.severity for alert in ALERTS if alert.subject == "waste" and "wasted" in alert.expr} == {"info"}
    labels = {label for name, series in known().items() for label in series.labels if ":" in name}
    assert labels <= {"cluster", "node", "partition", "account", "use"}


@needs_promtool
@pytest.mark.parametrize("name", ["prometheus.yml", "prometheus-tls.yml"])
def test_promtool_takes_the_scrape_examples(name: str, tmp_path: Path) -> None:
    """`promtool check config` takes each example with the files it names, and loads every rule."""
    text = (PROMETHEUS / name).read_text(encoding="utf-8")
    for path in re.findall(r"(/etc/[\w./-]+)", "\n".join(line for line in text.splitlines() if line[:1] != "#")):
        here = tmp_path / path.lstrip("/")
        here.parent.mkdir(parents=True, exist_ok=True)
        here.write_bytes((PROMETHEUS / "nodes.yml").read_bytes() if here.suffix == ".yml" else b"x")
        text = text.replace(path, str(here))
    (tmp_path / name).write_text(text, encoding="utf-8")
    shutil.copytree(RULES, tmp_path / "rules")
    said = promtool("check", "config", tmp_path / name)
    assert f"{len(list(RULES.glob('*.yml')))} rule files found" in said


def test_rules_and_scrape_examples_name_the_same_jobs() -> None:
    """Each job that a rule asks for is scraped by both examples, and the labels that rules expect are set there."""
    asked = {job for _, rule in rules() for job in re.findall(r'job="(gpuwaste-\w+)"', rule["expr"])}
    assert asked == {"gpuwaste-agent", "gpuwaste-hub", "gpuwaste-advisor", "gpuwaste-actor"}
    for name in ("prometheus.yml", "prometheus-tls.yml"):
        config = yaml.safe_load((PROMETHEUS / name).read_text(encoding="utf-8"))
        assert {scrape["job_name"] for scrape in config["scrape_configs"]} == asked
    (targets,) = yaml.safe_load((PROMETHEUS / "nodes.yml").read_text(encoding="utf-8"))
    assert set(targets["labels"]) <= TARGET_LABELS
