"""What the actions of `gpuwaste model` share: the registry that the options name, its bundles, and a change as text."""

import argparse
from typing import TYPE_CHECKING, Any

from gpuwaste.cli.options import add, add_config, print_own
from gpuwaste.cli.words import path_word

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuwaste.advice.renewal.model_types import ModelChange
    from gpuwaste.core.bundle_registry import BundleRegistry
    from gpuwaste.core.config import Config
    from gpuwaste.show.layout import Look


def add_registry(parser: argparse.ArgumentParser, *, of_others: bool = True) -> None:
    """Add --json, --models-dir and --config; `of_others`: also --waits and --times, for models of another kind."""
    add(parser, "json")
    add(parser, "models-dir", shown="common.models_dir")
    if of_others:
        other = parser.add_mutually_exclusive_group()
        other.add_argument("--waits", action="store_true", help="models of waits, which gpuwaste plan uses")
        other.add_argument("--times", action="store_true", help="models of step times, which gpuwaste estimate uses")
    add_config(parser)


def add_if_champion(parser: argparse.ArgumentParser) -> None:
    """Add --if-champion."""
    parser.add_argument("--if-champion", metavar="NAME", help="do nothing unless this model is in use (exit code 1)")


def registry_of(options: argparse.Namespace, config: "Config") -> "BundleRegistry[Any, Any]":
    """Return the registry that the options name. Raises GpuwasteError where its libraries are not installed."""
    from gpuwaste.cli.programs import load_program
    from gpuwaste.core.bundle_registry import WAITS

    models_dir = options.models_dir or path_word(config.common.models_dir)
    if getattr(options, "times", False):
        times: BundleRegistry[Any, Any] = load_program(
            "gpuwaste.estimate.time_bundle", "predict", "this host"
        ).TimesRegistry(models_dir)
        return times
    registries = load_program("gpuwaste.advice.predict.bundle", "predict", "this host")
    registry: BundleRegistry[Any, Any] = registries.Registry(models_dir)
    if getattr(options, "waits", False):
        features = load_program("gpuwaste.plan.wait_features", "sim", "this host")
        registry = registries.Registry(models_dir / WAITS, features.wait_features())
    return registry


def owned_registry(options: argparse.Namespace, config: "Config") -> "BundleRegistry[Any, Any]":
    """Return the registry, as the owner of its directory."""
    from gpuwaste.core.owner import become_owner

    registry = registry_of(options, config)
    become_owner(registry.models_dir)
    return registry


def bundle_named(registry: "BundleRegistry[Any, Any]", name: str | None) -> Any:
    """Return a bundle by name, or the one in use. Raises NoDataError, ModelError."""
    from gpuwaste.core.errors import NoDataError

    bundle = registry.load(name) if name else registry.load_champion()
    if bundle is None:
        raise NoDataError(f"{registry.models_dir}: no model in use: choose one with gpuwaste model promote NAME")
    return bundle


def check_champion(registry: "BundleRegistry[Any, Any]", name: str | None) -> None:
    """Raise ModelError where a model is named and another one is in use."""
    from gpuwaste.core.errors import ModelError

    champion = registry.champion()
    if name is not None and (champion is None or champion.name != name):
        found = "no model" if champion is None else champion.name
        raise ModelError(f"{registry.models_dir}: {found} is in use, not {name!r:.80}: nothing is changed")


def print_change(change: "Mapping[str, str]", options: argparse.Namespace) -> int:
    """Print what was changed as text or JSON; returns the exit code."""
    from gpuwaste.advice.renewal.model_types import ModelChange
    from gpuwaste.core.typed import convert

    print_own(convert(dict(change), ModelChange), _change_text, as_json=options.json)
    return 0


def print_champion(bundle: Any, options: argparse.Namespace) -> int:
    """Print which model is in use now; returns the exit code."""
    return print_change({"champion": bundle.manifest.name, "hash": bundle.hash}, options)


def _change_text(document: "ModelChange", _: "Look") -> str:
    return "".join(f"{name}: {value}\n" for name, value in document.to_json().items() if name != "document")
