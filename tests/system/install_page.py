"""A how-to page as steps: what it tells to type and to write, in its order, done on a host as it stands there."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.system.rpm_machine import Machine
from tests.system.rpm_scene import set_keys

CHECKOUT: Final = "/root/checkout"
"""Where commands are typed: a checkout after `make rpm`."""
_BLOCK: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE: Final = re.compile(r"in `(/etc/[^`]+)`:\n\n$")


@dataclass(frozen=True)
class Step:
    """A block of the page: a shell script, or text for the file that the words before it name."""

    script: str = ""
    file: str = ""
    text: str = ""

    def take(self, machine: Machine) -> str:
        """Type it, or write it; return what the commands wrote. Raises GpuwasteError."""
        if self.script:
            return machine.run(self.script, cwd=CHECKOUT)
        path = machine.root.file(self.file)
        if self.file.endswith(".toml") and path.exists():
            machine.root.write(self.file, set_keys(path.read_text(encoding="utf-8"), tomllib.loads(self.text)))
        else:
            before = path.read_text(encoding="utf-8") if path.exists() else ""
            machine.root.write(self.file, before + self.text)
        return ""


def steps(page: Path, heading: str) -> list[Step]:
    """Return the steps below a heading. Every block must be one: a shell script, or one that names its file."""
    text = page.read_text(encoding="utf-8")
    (part,) = re.findall(rf"^##+ {re.escape(heading)}\n(.*?)(?=^##|\Z)", text, flags=re.DOTALL | re.MULTILINE)
    found = []
    for block in _BLOCK.finditer(part):
        kind, body = block.groups()
        if kind == "sh":
            found.append(Step(script=body))
            continue
        named = _FILE.search(part[: block.start()])
        assert named, f"{heading}: the words before this block name no file:\n{body}"
        found.append(Step(file=named[1], text=body))
    return found


def take(machine: Machine, page: Path, heading: str) -> list[str]:
    """Take all steps below a heading; return what each wrote."""
    return [step.take(machine) for step in steps(page, heading)]
