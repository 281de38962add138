"""The configuration, gpuwaste.toml with its drop-ins: sections, keys, units and defaults as typed data.

Each key is declared once, with its text, in the file of its section; the reference page and the packaged file are
generated from these declarations. Only the command line and the daemons' main call `load_config`; all other code
receives values.
"""

from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, get_type_hints

from gpuwaste.core.act_config import ActorConfig, NotifyConfig
from gpuwaste.core.advice_config import AdvisorConfig, ModelsConfig, PluginConfig
from gpuwaste.core.agent_config import AgentConfig
from gpuwaste.core.config_files import ConfigLayer, merged, read_layers, readable_layers, with_credentials
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.hub_config import HubConfig, WebConfig
from gpuwaste.core.site_config import AnalyticsConfig, CommonConfig, EnergyConfig, EstimateConfig, SlurmClientConfig
from gpuwaste.core.typed_toml import nearest, read_keys

DEFAULT_PATH: Final = Path("/etc/gpuwaste/gpuwaste.toml")


@dataclass(frozen=True, slots=True)
class Config:
    """The complete configuration."""

    common: CommonConfig = field(default_factory=CommonConfig)
    slurm: SlurmClientConfig = field(default_factory=SlurmClientConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)
    hub: HubConfig = field(default_factory=HubConfig)
    advisor: AdvisorConfig = field(default_factory=AdvisorConfig)
    models: ModelsConfig = field(default_factory=ModelsConfig)
    actor: ActorConfig = field(default_factory=ActorConfig)
    plugin: PluginConfig = field(default_factory=PluginConfig)
    notify: NotifyConfig = field(default_factory=NotifyConfig)
    web: WebConfig = field(default_factory=WebConfig)
    analytics: AnalyticsConfig = field(default_factory=AnalyticsConfig)
    energy: EnergyConfig = field(default_factory=EnergyConfig)
    estimate: EstimateConfig = field(default_factory=EstimateConfig)


def load_config(path: Path | None = None) -> Config:
    """Read `path`, or the default path where it exists, and the drop-ins over it.

    Raises ConfigError naming the file, the key and the nearest known key.
    """
    layers = load_layers(path)
    if len(layers) == 1:
        return with_credentials(config_from_dict(dict(layers[0].data), str(layers[0].path)))
    for layer in layers:  # one by one: an error names its file
        config_from_dict(dict(layer.data), str(layer.path))
    return with_credentials(config_from_dict(merged(layers), str(path or DEFAULT_PATH)))


def load_layers(path: Path | None = None) -> list[ConfigLayer]:
    """Return the parsed files of a configuration, in the order in which they are read. Raises ConfigError."""
    return read_layers(path or DEFAULT_PATH, optional=path is None)


def config_from_dict(data: dict[str, Any], where: str) -> Config:
    """Build the configuration from parsed TOML; `where` names it in errors. Raises ConfigError."""
    config, faults = _read(data, where)
    if faults:
        raise faults[0]
    return config


def faulty_config(path: Path | None = None) -> tuple[Config, list[ConfigLayer], list[ConfigError]]:
    """Return the configuration, with defaults for what cannot be read, its files, and every error."""
    layers, faults = readable_layers(path or DEFAULT_PATH, optional=path is None)
    for layer in layers:
        faults += _read(layer.data, str(layer.path))[1]
    tables = [ConfigLayer(layer.path, _tables(layer.data)) for layer in layers]
    return with_credentials(_read(merged(tables), "")[0]), layers, faults


def _tables(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: table for name, table in data.items() if isinstance(table, dict)}


def _read(data: Mapping[str, Any], where: str) -> tuple[Config, list[ConfigError]]:
    known = [f.name for f in fields(Config)]
    faults = [
        ConfigError(f"{where}: unknown section [{name}]{nearest(name, set(known))}")
        for name in data
        if name not in known
    ]
    hints, sections = get_type_hints(Config), {}
    for name in known:
        values, own = read_keys(hints[name], data.get(name, {}), f"{where}: [{name}]")
        sections[name] = hints[name](**values)
        faults += own
    return Config(**sections), faults


def describe_config() -> list[tuple[str, str, str, Any, str]]:
    """Return (section, key, type, default, text) of every key, for the generated reference."""
    return [
        (section, key.name, getattr(hint, "__name__", str(hint)), key.default, key.metadata["text"])
        for section, hint, key in _keys()
    ]


def site_keys() -> list[tuple[str, str, Any, str]]:
    """Return (section, key, example, text) of the keys that every site must check."""
    keys = ((section, key) for section, _, key in _keys() if key.metadata["site"] is not None)
    return [(section, key.name, key.metadata["site"], key.metadata["text"]) for section, key in keys]


def _keys() -> Iterator[tuple[str, Any, Field[Any]]]:
    """Yield section, type and field of every key, in the order of the file."""
    for section, kind in get_type_hints(Config).items():
        hints = get_type_hints(kind)
        for key in fields(kind):
            yield section, hints[key.name], key
