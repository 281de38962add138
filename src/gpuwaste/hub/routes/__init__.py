"""The routes: each file here has one subject and exposes `add(app, exchange)`. A file is found by being here."""

import importlib
import pkgutil

from fastapi import FastAPI

from gpuwaste.hub.exchange import Exchange


def add_routes(app: FastAPI, exchange: Exchange) -> None:
    """Give the application the routes of every file."""
    for name in sorted(module.name for module in pkgutil.iter_modules(__path__)):
        importlib.import_module(f"{__name__}.{name}").add(app, exchange)
