"""The models of this site: list, show, promote one, go back, remove old ones, and see whether the one in use drifts."""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuwaste.cli.options import add_config, as_text, config_of

if TYPE_CHECKING:
    from gpuwaste.core.config import Config
    from gpuwaste.predict.registry import Registry
    from gpuwaste.report.layout import Look

HELP = "the models of this site: list, show, status, promote, rollback, add, prune"
EXAMPLES = (
    ("gpuwaste model list", "The models that there are; * is in use."),
    ("gpuwaste model rollback", "Go back to the one before."),
)
_ACTIONS = (
    ("list", "every bundle; * marks the one in use"),
    ("show", "what a bundle holds and what it was made from"),
    ("status", "whether the one in use has drifted: features, calibration, coverage"),
    ("promote", "check a bundle and put it in use"),
    ("rollback", "put the one before it in use again"),
    ("add", "check a bundle's directory and copy it in, without using it"),
    ("prune", "remove old bundles; the one in use and the one before it stay"),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    of: dict[str, argparse.ArgumentParser] = {}
    for name, text in _ACTIONS:
        of[name] = actions.add_parser(name, help=text, description=text)
        of[name].add_argument("--json", action="store_true", help="the whole document as JSON")
        of[name].add_argument("--models-dir", type=Path, metavar="DIR", help="instead of common.models_dir")
        add_config(of[name])
    of["show"].add_argument("name", metavar="NAME", nargs="?", help="the bundle (default: the one in use)")
    of["promote"].add_argument("name", metavar="NAME", help="the bundle, as list prints it")
    of["add"].add_argument("directory", metavar="DIRECTORY", type=Path, help="where manifest.json lies")
    of["prune"].add_argument("--keep", type=int, default=5, metavar="N", help="newest others to keep (default 5)")
    of["status"].add_argument("--store", type=Path, metavar="FILE", help="the hub's store (default: its state_dir's)")
    of["status"].add_argument("--swf", type=Path, metavar="FILE", help="a log in the standard workload format instead")
    of["status"].add_argument("--cluster", default="", metavar="NAME", help="of several clusters in the store")


def run(options: argparse.Namespace) -> int:
    """Do it and print what there is now."""
    from gpuwaste.cli.programs import load_program

    config = config_of(options)
    registry = load_program("gpuwaste.predict.registry", "predict", "this host").Registry(
        options.models_dir or Path(config.common.models_dir)
    )
    act: Callable[[argparse.Namespace, Registry, Config], int] = {
        "list": _list,
        "show": _show,
        "status": _status,
    }.get(options.action, _change)
    return act(options, registry, config)


def _list(options: argparse.Namespace, registry: "Registry", _: "Config") -> int:
    from gpuwaste.core.errors import NoDataError
    from gpuwaste.core.owner import become_owner
    from gpuwaste.report.models import list_text

    become_owner(registry.models_dir)
    entries = registry.list()
    if not entries and not options.json:
        raise NoDataError(f"{registry.models_dir}: no model there yet: gpuwaste train makes one")
    models = [
        {
            "name": e.name,
            "champion": e.champion,
            "hash": e.hash,
            "problem": e.problem,
            "origin": e.manifest.origin if e.manifest else "",
            "created_utc": e.manifest.created_utc if e.manifest else None,
            "rows": e.manifest.rows if e.manifest else None,
        }
        for e in entries
    ]
    _print({"document": "models", "models": models}, options, list_text)
    return 0 if entries else 3


def _show(options: argparse.Namespace, registry: "Registry", _: "Config") -> int:
    from dataclasses import asdict

    from gpuwaste.core.owner import become_owner
    from gpuwaste.report.models import show_text

    become_owner(registry.models_dir)
    bundle = _bundle(registry, options.name)
    _print({"document": "model", "hash": bundle.hash, **asdict(bundle.manifest)}, options, show_text)
    return 0


def _status(options: argparse.Namespace, registry: "Registry", config: "Config") -> int:
    from gpuwaste.cli.programs import load_program
    from gpuwaste.core.owner import as_owner, become_owner
    from gpuwaste.predict.status import drifted, status_document
    from gpuwaste.predict.vectors import replay_vectors
    from gpuwaste.report.models import status_text

    with as_owner(registry.models_dir):
        if registry.champion() is None:
            _bundle(registry, None)  # no model: no use to read a history
    source = load_program("gpuwaste.models.source", "predict", "this host")
    if options.swf:
        found = source.load_swf(options.swf, options.cluster)
    else:
        from gpuwaste.cli.hub_access import hub_client

        store = options.store or Path(config.hub.state_dir) / "hub.duckdb"
        found = source.load_source(store, hub_client(config) if not options.store else None, options.cluster)
    become_owner(registry.models_dir)
    bundle = _bundle(registry, None)
    document = status_document(bundle, found.table, replay_vectors(found.table).vectors)
    _print({**document, "source": found.text}, options, status_text)
    return 4 if drifted(document) else 0


def _change(options: argparse.Namespace, registry: "Registry", _: "Config") -> int:
    from gpuwaste.core.owner import as_owner, become_owner

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
    _print({"document": "model-change", **said}, options, _said)
    return 0


def _bundle(registry: "Registry", name: str | None) -> Any:
    """Return a bundle by name, or the one in use. Raises NoDataError, ModelError."""
    from gpuwaste.core.errors import NoDataError

    bundle = registry.load(name) if name else registry.load_champion()
    if bundle is None:
        raise NoDataError(f"{registry.models_dir}: no model is in use: gpuwaste model promote NAME")
    return bundle


def _print(
    document: Mapping[str, Any],
    options: argparse.Namespace,
    text: "Callable[[Mapping[str, Any], Look], str]",
) -> None:
    from gpuwaste.report.machine import to_json

    sys.stdout.write(to_json(document) if options.json else as_text(document, text))


def _said(document: Mapping[str, Any], _: "Look") -> str:
    return "".join(f"{name}: {value}\n" for name, value in document.items() if name != "document")
