"""What the tests of the Lua shim share: answers, settings, and a Lua interpreter with a made-up job."""

import os
import pwd
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpuwaste.advice.submit_frames import encode_reply
from gpuwaste.jobs.verdict import Action
from gpuwaste.testing.patience import patient
from gpuwaste.testing.scripted_advisor import Answer

SOURCE = Path(__file__).parents[2] / "plugins" / "job_submit" / "lua"
EXAMPLE = Path(__file__).parents[2] / "etc" / "slurm" / "job_submit.lua.example"
TOKEN = "0123456789abcdef"  # noqa: S105 - a verdict's id
INTERPRETERS = {"5.1": ("lua5.1", "/usr/include/lua5.1"), "5.4": ("lua5.4", "/usr/include/lua5.4")}


def say(action: Action, *lines: str, code: int = 0, token: str = TOKEN, time_min: int | None = None) -> Answer:
    """Return an answer that is the same for every request, on a history of this second."""
    return lambda _: encode_reply(token, action, lines, code=code, as_of=int(time.time()), time_min=time_min)


def write_settings(directory: Path, **plugin: str | int) -> Path:
    """Write gpuwaste.toml for a socket in this directory; the deadline is generous, these tests measure nothing."""
    values = {
        "deadline_us": 2_000_000,
        "kill_switch": str(directory / "disable"),
        "advisor_user": pwd.getpwuid(os.geteuid()).pw_name,
        **plugin,
    }
    lines = [
        f"{key} = {value if isinstance(value, int) else chr(34) + value + chr(34)}" for key, value in values.items()
    ]
    path = directory / "gpuwaste.toml"
    path.write_text("\n".join(["[advisor]", f'socket = "{directory / "advisor.sock"}"', "[plugin]", *lines, ""]))
    return path


@dataclass
class Outcome:
    """What a Lua script printed: results by line, what it set, told the user and logged."""

    results: list[str] = field(default_factory=list)
    set: dict[str, str] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)


PRELUDE = r"""
local function line(kind, text)
  io.write(kind, "\t", (tostring(text):gsub("\\", "\\\\"):gsub("\n", "\\n")), "\n")
end
slurm = {SUCCESS = 0, ERROR = -1}
function slurm.log_user(...) line("told", string.format(...)) end
function slurm.log_error(...) line("logged", string.format(...)) end
function made(fields)
  return setmetatable({}, {
    __index = function(_, name) return fields[name] end,
    __newindex = function(_, name, value) fields[name] = value line("set", name .. "=" .. tostring(value)) end,
  })
end
function result(value) line("result", type(value) .. " " .. tostring(value)) end
"""


class Lua:
    """Runs scripts under one interpreter, with the shim built for it."""

    def __init__(self, program: str, built: Path, directory: Path) -> None:
        self.program, self.built, self.directory = program, built, directory

    def run(self, script: str, env: Mapping[str, str] | None = None) -> Outcome:
        """Run a script after the prelude; it must end well, whatever it calls."""
        file = self.directory / "script.lua"
        file.write_text(PRELUDE + script)
        values = {
            "PATH": os.environ["PATH"],
            "LUA_PATH": f"{self.built}/?.lua;;",
            "LUA_CPATH": f"{self.built}/?.so;;",
            "GPUWASTE_CONFIG": str(self.directory / "gpuwaste.toml"),
            **(env or {}),
        }
        done = subprocess.run(
            [self.program, str(file)],
            env=values,
            capture_output=True,
            timeout=patient(60),
            check=False,
            cwd=self.directory,
        )
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        return _parse(done.stdout.decode(errors="surrogateescape"))


def _parse(text: str) -> Outcome:
    outcome = Outcome()
    for row in text.splitlines():
        kind, _, rest = row.partition("\t")
        value = rest.replace("\\n", "\n").replace("\\\\", "\\")
        if kind == "set":
            name, _, what = value.partition("=")
            outcome.set[name] = what
        else:
            {"result": outcome.results, "told": outcome.told, "logged": outcome.logged}[kind].append(value)
    return outcome


def build(built: Path, include: str) -> Path:
    """Build the shim for the Lua with these headers; a warning is an error here, not at a site's own compiler."""
    flags = [f"OUT={built}", f"LUA_INCLUDE={include}", "WERROR=-Werror"]
    subprocess.run(["make", "-s", "-C", str(SOURCE), *flags], check=True, capture_output=True)
    return built
