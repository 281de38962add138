"""event-kinds.md, from the catalogue of events and the settings of outlets and inlets."""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any, Final

from msgspec.inspect import type_info

from gpuwaste.act.events import inlet, outlet
from gpuwaste.act.events.inlet import InletTable
from gpuwaste.act.events.outlet import OutletTable
from gpuwaste.jobs.events.kind_catalogue import PREFIX, TYPES, KindTable, catalogue
from tools.reference.markdown import code, document, table

_INTRO: Final = f"""
What the hub tells other systems, as CloudEvents 1.0; the `type` of an event is `{PREFIX}` and its kind. How to send
them: [events](../how-to/events.md). The JSON Schemas: `gpuwaste events kinds --json`, or `GET /v1/events/kinds`. Fields
are only added; ignore those that you do not know. What the daemons log is another list: [events of the log](events.md).
"""
_OUTLETS: Final = """
## Outlets

An outlet is one TOML file in `[hub] outlets_dir` (`/etc/gpuwaste/outlets.d`) with the table `[outlet]`, which may be
left out, and one of the other tables. Its name is the file's.
"""
_INLETS: Final = """
## Inlets

An inlet is one TOML file in `[hub] inlets_dir` (`/etc/gpuwaste/inlets.d`) with the table `[inlet]`, which may be
empty, one of the tables below that say how events come, and any number of tables `[kind.NAME]`. Its name is the file's.
"""


def page() -> str:
    """Return the page: kinds by family, then the tables of an outlet and of an inlet."""
    parts = [_INTRO]
    for family in dict.fromkeys(kind.family for kind in catalogue().values()):
        rows = [(code(kind.name), kind.about) for kind in catalogue().values() if kind.family == family]
        parts += [f"## {family}", table(("kind", "when"), rows)]
        for data in dict.fromkeys(kind.data for kind in catalogue().values() if kind.family == family):
            parts.append(f"{data.__name__}: " + ", ".join(map(code, _names(data))) + ".")
    parts += [_OUTLETS, *_tables({"outlet": OutletTable}, outlet.WAYS)]
    parts += [_INLETS, *_tables({"inlet": InletTable, "kind.NAME": KindTable}, inlet.WAYS)]
    parts.append("Types of fields: " + ", ".join(map(code, TYPES)) + "; with ? the field may be left out.")
    return document("Event kinds", *parts)


def _names(data: type) -> list[str]:
    """Return the fields of an event's data as they are sent."""
    found: Any = type_info(data)
    return [field.encode_name for field in found.fields]


def _tables(first: Mapping[str, Any], ways: Mapping[str, Any]) -> Iterator[str]:
    for name, kind in {**first, **{way: module.SETTINGS for way, module in ways.items()}}.items():
        yield f"### [{name}]"
        yield _keys(kind)
        if name in ways:
            yield inspect.cleandoc(str(ways[name].__doc__))


def _keys(kind: Any) -> str:
    rows = []
    for field in fields(kind):
        make: Any = field.default_factory
        default = make() if field.default is MISSING else field.default
        shown = "" if default in ("", (), {}) else code(str(default))
        rows.append((code(field.name.removesuffix("_")), shown, field.metadata["text"]))
    return table(("key", "default", "meaning"), rows)
