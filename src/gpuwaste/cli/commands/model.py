"""Manage the models of this site: list, show, check for drift, try out, promote, roll back, add, remove old ones."""

import argparse
from typing import TYPE_CHECKING, Any

from gpuwaste.cli.options import add, add_config, config_of, print_own
from gpuwaste.cli.words import path_word

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuwaste.advice.predict.bundle import Registry
    from gpuwaste.advice.renewal.model_types import ModelChange
    from gpuwaste.core.bundle_registry import BundleRegistry
    from gpuwaste.core.config import Config
    from gpuwaste.show.layout import Look

HELP = "models: list, show, status, trial, challenge, withdraw, promote, rollback, add, prune"
EXAMPLES = (
    ("gpuwaste model list", "All models; * marks the one in use."),
    ("gpuwaste model rollback", "Use the previous model again."),
)
_ACTIONS = (
    ("list", "list all models; * marks the one in use, ? the one on trial"),
    ("show", "show what a model contains and what it was trained on"),
    ("status", "check the model in use for drift: features, calibration, coverage; exit code 4 on drift"),
    ("trial", "compare the model on trial with the one in use (asks the hub)"),
    ("challenge", "check a model and put it on trial: scored in shadow, not used"),
    ("withdraw", "end the trial"),
    ("promote", "check a model and use it"),
    ("rollback", "use the previous model again"),
    ("add", "check a model's directory and copy it into the registry, without using it"),
    ("prune", "remove old models; the one in use and the previous one are kept"),
)
_NOT_OF_OTHERS = frozenset({"status", "challenge", "withdraw"})


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    of: dict[str, argparse.ArgumentParser] = {}
    for name, text in _ACTIONS:
        of[name] = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        add(of[name], "json")
        if name == "trial":
            add_config(of[name])
            continue
        add(of[name], "models-dir", shown="common.models_dir")
        if name not in _NOT_OF_OTHERS:
            other = of[name].add_mutually_exclusive_group()
            other.add_argument("--waits", action="store_true", help="models of waits, those that gpuwaste plan uses")
            other.add_argument("--times", action="store_true", help="models of step times, of gpuwaste estimate train")
        add_config(of[name])
    of["show"].add_argument(
        "name", metavar="NAME", nargs="?", help="model, as list prints it (default: the one in use)"
    )
    for name in ("promote", "challenge"):
        of[name].add_argument("name", metavar="NAME", help="model, as list prints it")
    for name in ("promote", "rollback"):
        of[name].add_argument(
            "--if-champion", metavar="NAME", help="do nothing unless this model is in use (exit code 1)"
        )
    of["add"].add_argument("directory", metavar="DIR", type=path_word, help="directory with the model's manifest.json")
    of["prune"].add_argument("--keep", type=int, default=5, metavar="N", help="newest others to keep (default: 5)")
    source = of["status"].add_mutually_exclusive_group()
    add(source, "store", shown="the hub's store, or the hub")
    add(source, "swf")
    add(of["status"], "clusters", default="", shown="common.cluster")


def run(options: argparse.Namespace) -> int:
    """Do it and print the new state."""
    config = config_of(options)
    if options.action == "trial":
        return _trial(options, config)
    registry = _registry(options, config)
    act: Callable[[argparse.Namespace, Any, Config], int] = {
        "list": _list,
        "show": _show,
        "status": _status,
    }.get(options.action, _change)
    return act(options, registry, config)


def _registry(options: argparse.Namespace, config: "Config") -> "BundleRegistry[Any, Any]":
    """Return the registry that the options name."""
    from gpuwaste.cli.programs import load_program
    from gpuwaste.core.bundle_registry import WAITS

    models_dir = options.models_dir or path_word(config.common.models_dir)
    if options.action not in _NOT_OF_OTHERS and options.times:
        times: BundleRegistry[Any, Any] = load_program(
            "gpuwaste.estimate.time_bundle", "predict", "this host"
        ).TimesRegistry(models_dir)
        return times
    registries = load_program("gpuwaste.advice.predict.bundle", "predict", "this host")
    registry: BundleRegistry[Any, Any] = registries.Registry(models_dir)
    if options.action not in _NOT_OF_OTHERS and options.waits:
        features = load_program("gpuwaste.plan.wait_features", "sim", "this host")
        registry = registries.Registry(models_dir / WAITS, features.wait_features())
    return registry


def _list(options: argparse.Namespace, registry: "BundleRegistry[Any, Any]", _: "Config") -> int:
    from gpuwaste.advice.renewal.model_types import ModelRow, ModelsDocument
    from gpuwaste.advice.renewal.models_text import list_text
    from gpuwaste.core.bundle_registry import BundleStatus
    from gpuwaste.core.errors import NoDataError
    from gpuwaste.core.owner import become_owner

    become_owner(registry.models_dir)
    entries = registry.list()
    if not entries and not options.json:
        raise NoDataError(f"{registry.models_dir}: no model in this directory: train one with {registry.command}")
    models = [
        ModelRow(
            **{name: getattr(e, name) for name in BundleStatus.__struct_fields__},
            origin=e.manifest.origin if e.manifest else "",
            created_utc=e.manifest.created_utc if e.manifest else None,
            rows=e.manifest.rows if e.manifest else None,
        )
        for e in entries
    ]
    print_own(ModelsDocument(models=models), list_text, as_json=options.json)
    return 0 if entries else 3


def _show(options: argparse.Namespace, registry: "BundleRegistry[Any, Any]", config: "Config") -> int:
    from gpuwaste.advice.renewal.model_types import ModelDocument
    from gpuwaste.advice.renewal.models_text import show_text
    from gpuwaste.core.owner import become_owner
    from gpuwaste.ledger.ledger import LedgerSettings

    become_owner(registry.models_dir)
    bundle = _bundle(registry, options.name)
    if options.times:
        from gpuwaste.cli.step_time_models import show_times

        return show_times(bundle, as_json=options.json)
    note = bundle.rule_note(LedgerSettings.from_config(config.hub).under_use)
    document = ModelDocument(hash=bundle.hash, note=note, manifest=bundle.manifest)
    print_own(document, show_text, as_json=options.json)
    return 0


def _status(options: argparse.Namespace, registry: "Registry", config: "Config") -> int:
    from msgspec.structs import replace

    from gpuwaste.advice.predict.vectors import replay_vectors
    from gpuwaste.advice.renewal.model_status import drifted, status_document
    from gpuwaste.advice.renewal.models_text import status_text
    from gpuwaste.cli.job_sources import known_source
    from gpuwaste.cli.programs import load_program
    from gpuwaste.core.owner import as_owner, become_owner

    with as_owner(registry.models_dir):
        if registry.champion() is None:
            _bundle(registry, None)  # no model: no need to read a history
    load_program("gpuwaste.models.job_source", "predict", "this host")
    found = known_source(options, config)
    become_owner(registry.models_dir)
    bundle = _bundle(registry, None)
    document = status_document(bundle, found.table, replay_vectors(found.table).vectors)
    print_own(replace(document, source=found.text), status_text, as_json=options.json)
    return 4 if drifted(document) else 0


def _trial(options: argparse.Namespace, config: "Config") -> int:
    from gpuwaste.advice.renewal.models_text import trial_text
    from gpuwaste.advice.renewal.trial_types import TrialDocument
    from gpuwaste.cli.hub_access import hub_client
    from gpuwaste.core.codec import convert
    from gpuwaste.net.hub_client import TRIAL_PATH

    document = convert(hub_client(config).get(TRIAL_PATH), TrialDocument, "the hub's trial of models")
    print_own(document, trial_text, as_json=options.json)
    return 0


def _change(options: argparse.Namespace, registry: "BundleRegistry[Any, Any]", _: "Config") -> int:
    from gpuwaste.advice.renewal.model_types import ModelChange
    from gpuwaste.core.owner import as_owner, become_owner
    from gpuwaste.core.typed import convert

    files = None
    if options.action == "add":
        with as_owner(options.directory):
            files = registry.files(options.directory)
    become_owner(registry.models_dir)
    if options.action == "add":
        said = {"added": registry.add(options.directory, files)}
    elif options.action == "prune":
        from gpuwaste.core.errors import UsageError

        if options.keep < 0:
            raise UsageError(f"--keep {options.keep}: expected 0 or more")
        said = {"removed": ", ".join(registry.prune(options.keep)) or "nothing"}
    elif options.action == "challenge":
        said = {"challenger": options.name, "hash": registry.challenge(options.name).hash}
    elif options.action == "withdraw":
        said = {"withdrawn": registry.withdraw() or "nothing"}
    else:
        _check_champion(registry, options.if_champion)
        bundle = registry.promote(options.name) if options.action == "promote" else registry.rollback()
        said = {"champion": bundle.manifest.name, "hash": bundle.hash}
    print_own(convert(said, ModelChange), _said, as_json=options.json)
    return 0


def _check_champion(registry: "BundleRegistry[Any, Any]", name: str | None) -> None:
    """Raise ModelError where a model is named and another one is in use."""
    from gpuwaste.core.errors import ModelError

    champion = registry.champion()
    if name is not None and (champion is None or champion.name != name):
        found = "no model" if champion is None else champion.name
        raise ModelError(f"{registry.models_dir}: {found} is in use, not {name!r:.80}: nothing is changed")


def _bundle(registry: "BundleRegistry[Any, Any]", name: str | None) -> Any:
    """Return a bundle by name, or the one in use. Raises NoDataError, ModelError."""
    from gpuwaste.core.errors import NoDataError

    bundle = registry.load(name) if name else registry.load_champion()
    if bundle is None:
        raise NoDataError(f"{registry.models_dir}: no model in use: choose one with gpuwaste model promote NAME")
    return bundle


def _said(document: "ModelChange", _: "Look") -> str:
    return "".join(f"{name}: {value}\n" for name, value in document.to_json().items() if name != "document")
