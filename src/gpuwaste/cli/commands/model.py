"""Manage the models of this site: list, show, check for drift, promote, roll back, add, remove old ones."""

import argparse
from typing import TYPE_CHECKING, Any

from gpuwaste.cli.options import add, add_config, config_of, print_own
from gpuwaste.cli.words import path_word

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuwaste.core.config import Config
    from gpuwaste.documents.model_types import ModelChange
    from gpuwaste.predict.registry import Registry
    from gpuwaste.report.layout import Look

HELP = "models: list, show, status, promote, rollback, add, prune"
EXAMPLES = (
    ("gpuwaste model list", "All models; * marks the one in use."),
    ("gpuwaste model rollback", "Use the previous model again."),
)
_ACTIONS = (
    ("list", "list all models; * marks the one in use"),
    ("show", "show what a model contains and what it was trained on"),
    ("status", "check the model in use for drift: features, calibration, coverage; exit code 4 on drift"),
    ("promote", "check a model and use it"),
    ("rollback", "use the previous model again"),
    ("add", "check a model's directory and copy it into the registry, without using it"),
    ("prune", "remove old models; the one in use and the previous one are kept"),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    of: dict[str, argparse.ArgumentParser] = {}
    for name, text in _ACTIONS:
        of[name] = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        add(of[name], "json")
        add(of[name], "models-dir", shown="common.models_dir")
        if name != "status":
            of[name].add_argument("--waits", action="store_true", help="models of waits, those that gpuwaste plan uses")
        add_config(of[name])
    of["show"].add_argument(
        "name", metavar="NAME", nargs="?", help="model, as list prints it (default: the one in use)"
    )
    of["promote"].add_argument("name", metavar="NAME", help="model, as list prints it")
    of["add"].add_argument("directory", metavar="DIR", type=path_word, help="directory with the model's manifest.json")
    of["prune"].add_argument("--keep", type=int, default=5, metavar="N", help="newest others to keep (default: 5)")
    source = of["status"].add_mutually_exclusive_group()
    add(source, "store", shown="the hub's store, or the hub")
    add(source, "swf")
    add(of["status"], "clusters", default="", shown="common.cluster")


def run(options: argparse.Namespace) -> int:
    """Do it and print what there is now."""
    from gpuwaste.cli.programs import load_program

    config = config_of(options)
    registries = load_program("gpuwaste.predict.registry", "predict", "this host")
    models_dir = options.models_dir or path_word(config.common.models_dir)
    registry = registries.Registry(models_dir)
    if options.action != "status" and options.waits:
        features = load_program("gpuwaste.plan.waits.features", "sim", "this host")
        registry = registries.Registry(models_dir / registries.WAITS, features.wait_features())
    act: Callable[[argparse.Namespace, Registry, Config], int] = {
        "list": _list,
        "show": _show,
        "status": _status,
    }.get(options.action, _change)
    return act(options, registry, config)


def _list(options: argparse.Namespace, registry: "Registry", _: "Config") -> int:
    from gpuwaste.core.errors import NoDataError
    from gpuwaste.core.owner import become_owner
    from gpuwaste.documents.model_types import ModelRow, ModelsDocument
    from gpuwaste.report.models import list_text

    become_owner(registry.models_dir)
    entries = registry.list()
    if not entries and not options.json:
        raise NoDataError(f"{registry.models_dir}: no model in this directory: train one with gpuwaste train")
    models = [
        ModelRow(
            name=e.name,
            champion=e.champion,
            hash=e.hash,
            problem=e.problem,
            origin=e.manifest.origin if e.manifest else "",
            created_utc=e.manifest.created_utc if e.manifest else None,
            rows=e.manifest.rows if e.manifest else None,
        )
        for e in entries
    ]
    print_own(ModelsDocument(models=models), list_text, as_json=options.json)
    return 0 if entries else 3


def _show(options: argparse.Namespace, registry: "Registry", config: "Config") -> int:
    from gpuwaste.core.owner import become_owner
    from gpuwaste.documents.model_types import model_document
    from gpuwaste.report.models import show_text
    from gpuwaste.waste.ledger_settings import LedgerSettings

    become_owner(registry.models_dir)
    bundle = _bundle(registry, options.name)
    note = bundle.rule_note(LedgerSettings.from_config(config.hub).under_use)
    print_own(model_document(bundle.manifest, bundle.hash, note), show_text, as_json=options.json)
    return 0


def _status(options: argparse.Namespace, registry: "Registry", config: "Config") -> int:
    from msgspec.structs import replace

    from gpuwaste.cli.programs import load_program
    from gpuwaste.cli.sources import known_source
    from gpuwaste.core.owner import as_owner, become_owner
    from gpuwaste.documents.model_status import drifted, status_document
    from gpuwaste.predict.vectors import replay_vectors
    from gpuwaste.report.models import status_text

    with as_owner(registry.models_dir):
        if registry.champion() is None:
            _bundle(registry, None)  # no model: no use to read a history
    load_program("gpuwaste.models.job_source", "predict", "this host")
    found = known_source(options, config)
    become_owner(registry.models_dir)
    bundle = _bundle(registry, None)
    document = status_document(bundle, found.table, replay_vectors(found.table).vectors)
    print_own(replace(document, source=found.text), status_text, as_json=options.json)
    return 4 if drifted(document) else 0


def _change(options: argparse.Namespace, registry: "Registry", _: "Config") -> int:
    from msgspec import convert

    from gpuwaste.core.owner import as_owner, become_owner
    from gpuwaste.documents.model_types import ModelChange

    files = None
    if options.action == "add":
        from gpuwaste.predict.bundle_files import read_bundle

        with as_owner(options.directory):
            files = read_bundle(options.directory)
    become_owner(registry.models_dir)
    if options.action == "add":
        said = {"added": registry.add(options.directory, files)}
    elif options.action == "prune":
        from gpuwaste.core.errors import UsageError

        if options.keep < 0:
            raise UsageError(f"--keep {options.keep}: expected 0 or more")
        said = {"removed": ", ".join(registry.prune(options.keep)) or "nothing"}
    else:
        bundle = registry.promote(options.name) if options.action == "promote" else registry.rollback()
        said = {"champion": bundle.manifest.name, "hash": bundle.hash}
    print_own(convert(said, ModelChange), _said, as_json=options.json)
    return 0


def _bundle(registry: "Registry", name: str | None) -> Any:
    """Return a bundle by name, or the one in use. Raises NoDataError, ModelError."""
    from gpuwaste.core.errors import NoDataError

    bundle = registry.load(name) if name else registry.load_champion()
    if bundle is None:
        raise NoDataError(f"{registry.models_dir}: no model in use: choose one with gpuwaste model promote NAME")
    return bundle


def _said(document: "ModelChange", _: "Look") -> str:
    return "".join(f"{name}: {value}\n" for name, value in document.to_json().items() if name != "document")
