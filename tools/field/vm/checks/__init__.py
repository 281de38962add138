"""The checks of the virtual machine: those of the namespaces that it repeats, and its own, one file each.

They run in the order of ORDER on one machine; each leaves the site as it was.
"""

import importlib
from collections.abc import Sequence
from typing import Final

from tools.field import checks
from tools.field.checks import Check

_SHARED: Final = ("units", "doctor", "job")
"""What a half remedy passes in the namespaces, where cgroups have no controllers, and must pass here."""
ORDER: Final = (*_SHARED, "output", "limits", "memory", "oom", "cores", "allowed")


def checks_named(names: Sequence[str] = ()) -> tuple[Check, ...]:
    """Return the checks with these file names, in the order of ORDER; all of them where none is named."""
    files = [name for name in ORDER if not names or name in names]
    packages = [checks.__name__ if name in _SHARED else __name__ for name in files]
    modules = [importlib.import_module(f"{package}.{name}") for package, name in zip(packages, files, strict=True)]
    return tuple(Check(name, module.NAME, module.run) for name, module in zip(files, modules, strict=True))
