"""The submit plugin: configured in slurm.conf, installed, and built for the running release of Slurm."""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpuwaste.cli.check import Check, Role, Status, Surroundings
from gpuwaste.core.errors import ConfigError, ParseError
from gpuwaste.slurm.formats.conf_file import read_text

# A Slurm plugin exports `plugin_version`, a uint32 of major, minor and micro in a byte each, and `plugin_type`, a text;
# slurmctld compares the first with its own before it calls anything. Both are looked up in the table of dynamic symbols
# (ELF64, little-endian, as x86_64 and aarch64 are).
PLACE: Final = 75
NAME: Final = "plugin"
ROLES: Final = frozenset({Role.ADVISOR})
_CONF: Final = "/etc/slurm/slurm.conf"
_SETTING: Final = re.compile(r"\s*JobSubmitPlugins\s*=\s*(\S*)", re.IGNORECASE)
_FILE: Final = "job_submit_gpuwaste.so"
LONGEST: Final = 64 * 1024**2
_IDENT: Final = b"\x7fELF\x02\x01"  # 64 bits, little-endian
_HEADER: Final = struct.Struct("<16xHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_DYNAMIC_SYMBOLS: Final = 11
_LOADED: Final = 1
_LONGEST_TEXT: Final = 256


def check(around: Surroundings) -> Iterator[Check]:
    """Check PluginDir; a plugin that is missing or of another release keeps slurmctld from starting."""
    slurm = around.slurm.config()
    named, conf = slurm.settings.get("JobSubmitPlugins", ""), Path(slurm.settings.get("SLURM_CONF", _CONF))
    if _names_ours(named):
        yield _shared_object(slurm.settings.get("PluginDir", ""), slurm.version)
    elif _names_ours(_written(conf)):
        yield Check(
            NAME,
            Status.WARN,
            f"{conf} names the submit plugin, but slurmctld runs without it: no job gets advice",
            "as root: systemctl restart slurmctld",
        )
    elif "lua" in [name.strip() for name in named.split(",")]:
        yield _lua(conf.with_name("job_submit.lua"))
    else:
        yield Check(
            NAME,
            Status.WARN,
            "slurm.conf has no submit plugin of gpuwaste: no job gets advice",
            "JobSubmitPlugins=gpuwaste",
        )
    switch = Path(around.config.plugin.kill_switch)
    if switch.exists():
        yield Check(
            "switch", Status.WARN, f"{switch} exists: the plugins accept every job without advice", f"rm {switch}"
        )


def _names_ours(setting: str) -> bool:
    return not {"gpuwaste", "job_submit/gpuwaste"}.isdisjoint(name.strip() for name in setting.split(","))


def _written(conf: Path) -> str:
    """Return JobSubmitPlugins of the current slurm.conf; empty where the file cannot be read here."""
    try:
        lines = read_text(conf)
    except ConfigError:
        return ""
    found = [match[1] for line in lines if (match := _SETTING.match(line.text))]
    return found[-1] if found else ""


def _shared_object(plugin_dir: str, running: str) -> Check:
    """Check the first file that slurmctld would find."""
    places = [Path(place) / _FILE for place in plugin_dir.split(":") if place]
    path = next((place for place in places if place.exists()), None)
    stop = "take gpuwaste out of JobSubmitPlugins before slurmctld restarts: otherwise it cannot start"
    if path is None:
        return Check(NAME, Status.FAIL, f"{_FILE} is not in PluginDir={plugin_dir}", f"install it, or {stop}")
    try:
        plugin = read_plugin(path)
    except (ParseError, OSError) as error:
        return Check(NAME, Status.FAIL, str(error), f"install it again, or {stop}")
    if plugin.release != running:
        found = f"{path} was built for Slurm {plugin.release}, slurmctld is {running}"
        return Check(NAME, Status.FAIL, found, f"install the one for {running}, or {stop}")
    return Check(NAME, Status.OK, f"{path}, built for Slurm {plugin.release}")


def _lua(path: Path) -> Check:
    try:
        asks = "gpuwaste" in path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return Check(NAME, Status.FAIL, f"{path}: {error.strerror}", "slurmctld needs it: JobSubmitPlugins=lua")
    if asks:
        return Check(NAME, Status.OK, f"{path} names gpuwaste")
    return Check(NAME, Status.WARN, f"{path} does not call gpuwaste", "see docs/how-to/submit-lua.md")


@dataclass(frozen=True, slots=True)
class PluginFile:
    """What a plugin exports about itself: its type, such as job_submit/gpuwaste, and the release, such as 22.05.8."""

    type: str
    release: str


def read_plugin(path: Path) -> PluginFile:
    """Return the plugin's data. Raises ParseError where the file is no plugin, OSError where it cannot be read."""
    if path.stat().st_size > LONGEST:
        raise ParseError(f"{path}: too large for a Slurm plugin")
    data = path.read_bytes()
    try:
        return _plugin(data)
    except (struct.error, ValueError, LookupError, OverflowError) as error:
        raise ParseError(f"{path}: not a Slurm plugin for this machine: {error}") from error


def release_of(number: int) -> str:
    """Return 22.05.8 for 0x160508, as Slurm counts its releases."""
    return f"{number >> 16 & 0xFF}.{number >> 8 & 0xFF:02d}.{number & 0xFF}"


def _plugin(data: bytes) -> PluginFile:
    if not data.startswith(_IDENT):
        raise ValueError("no 64-bit little-endian ELF file")
    header = _HEADER.unpack_from(data)
    wanted = dict(_symbols(data, _places(header[5], header[10], header[11])))
    segments = [_SEGMENT.unpack_from(data, at) for at in _places(header[4], header[8], header[9])]
    (number,) = struct.unpack_from("<I", data, _place(segments, wanted[b"plugin_version"]))
    start = _place(segments, wanted[b"plugin_type"])
    kind = data[start : data.index(b"\0", start, start + _LONGEST_TEXT)]
    return PluginFile(kind.decode("ascii"), release_of(number))


def _places(start: int, size: int, count: int) -> range:
    """Return the places of a table's entries."""
    if not size:
        raise ValueError("a table without entries")
    return range(start, start + size * count, size)


def _symbols(data: bytes, places: range) -> Iterator[tuple[bytes, int]]:
    """Yield name and address of the dynamic symbols."""
    sections = [_SECTION.unpack_from(data, at) for at in places]
    for section in sections:
        if section[1] != _DYNAMIC_SYMBOLS:
            continue
        names = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], _SYMBOL.size):
            name, _, _, _, address, _ = _SYMBOL.unpack_from(data, at)
            begin = names + name
            yield data[begin : data.index(b"\0", begin)], address


def _place(segments: list[tuple[int, ...]], address: int) -> int:
    """Return the place of an address in the file."""
    for kind, _flags, offset, virtual, _physical, in_file, *_rest in segments:
        if kind == _LOADED and virtual <= address < virtual + in_file:
            return offset + address - virtual
    raise ValueError("a symbol outside the file")
