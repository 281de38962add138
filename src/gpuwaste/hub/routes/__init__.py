"""The routes: each file here has one subject and exposes `add(app, exchange)`. Files need no registration."""

from typing import Any

from fastapi import FastAPI

from gpuwaste.core.registry import ModuleRegistry
from gpuwaste.hub.exchange import Exchange


def add_routes(app: FastAPI, exchange: Exchange) -> None:
    """Give the application the routes of every file."""
    for module in ModuleRegistry[Any](__name__, "add").values():
        module.add(app, exchange)
