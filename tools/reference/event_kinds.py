"""event-kinds.md, from the catalogue of events and the settings of outlets."""

import inspect
from dataclasses import MISSING, fields
from typing import Any, Final

from gpuwaste.events.catalogue import PREFIX, catalogue
from gpuwaste.events.outlet_files import OutletTable, ways
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


def page() -> str:
    """Return the page: kinds by family, then the tables of an outlet."""
    parts = [_INTRO]
    for family in dict.fromkeys(kind.family for kind in catalogue().values()):
        rows = [(code(kind.name), kind.about) for kind in catalogue().values() if kind.family == family]
        parts += [f"## {family}", table(("kind", "when"), rows)]
        for data in dict.fromkeys(kind.data for kind in catalogue().values() if kind.family == family):
            parts.append(f"{data.__name__}: " + ", ".join(code(field.name) for field in fields(data)) + ".")
    parts.append(_OUTLETS)
    for name, kind in {"outlet": OutletTable, **{way: module.SETTINGS for way, module in ways().items()}}.items():
        parts += [f"### [{name}]", _keys(kind)]
    for module in ways().values():
        parts.append(inspect.cleandoc(str(module.__doc__)))
    return document("Event kinds", *parts)


def _keys(kind: Any) -> str:
    rows = []
    for field in fields(kind):
        make: Any = field.default_factory
        default = make() if field.default is MISSING else field.default
        shown = "" if default in {"", ()} else code(str(default))
        rows.append((code(field.name.removesuffix("_")), shown, field.metadata["text"]))
    return table(("key", "default", "meaning"), rows)
