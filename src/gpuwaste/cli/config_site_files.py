"""`gpuwaste config check`, the site's files: policies, inlets, outlets, campaigns, prices and names of users."""

from collections.abc import Iterator
from pathlib import Path

from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError


def policies(_: Path, config: Config) -> Iterator[str]:
    """Read the policies, as advisor and hub do."""
    from gpuwaste.advice.policy.policy_loading import load_policies

    try:
        load_policies(Path(config.advisor.policies_dir))
    except GpuwasteError as error:
        yield f"[advisor] policies_dir: {error}"


def outlets(_: Path, config: Config) -> Iterator[str]:
    """Read the inlets and the outlets, as the hub does."""
    from gpuwaste.act.events.inlet import load_inlets
    from gpuwaste.act.events.outlet import load_outlets

    inlets, errors = load_inlets(Path(config.hub.inlets_dir))
    for error in errors:
        yield f"[hub] inlets_dir: {error}"
    site = {name for inlet in inlets for name in inlet.own}
    for error in load_outlets(Path(config.hub.outlets_dir), site)[1]:
        yield f"[hub] outlets_dir: {error}"


def campaigns(_: Path, config: Config) -> Iterator[str]:
    """Read the campaigns, as hub and advisor do."""
    from gpuwaste.act.campaigns.assignment import HOW_TO_MAKE, NO_KEY
    from gpuwaste.act.campaigns.campaign_file import load_campaigns

    found = load_campaigns(Path(config.common.campaigns_dir))
    for error in found.errors:
        yield f"[common] campaigns_dir: {error}"
    if found.campaigns and not config.common.campaign_key_file:
        yield f"{NO_KEY}: {HOW_TO_MAKE}"


def files_of_values(_: Path, config: Config) -> Iterator[str]:
    """Read prices of energy and users of other clusters, without which the hub starts, and what estimates use."""
    for read in (_tariff, _user_names, _prices, _links):
        try:
            read(config)
        except ModuleNotFoundError:
            continue  # a host without that package does not use them
        except GpuwasteError as error:
            yield str(error)


def _tariff(config: Config) -> None:
    from gpuwaste.ledger.energy.site_tariff import read_tariff

    read_tariff(config.energy)


def _user_names(config: Config) -> None:
    from gpuwaste.jobs.importers.user_names import read_user_names

    read_user_names(config.hub.user_names_file, config.common.cluster)


def _prices(config: Config) -> None:
    from gpuwaste.slurm.gpu_types import site_prices

    site_prices(config.estimate.prices)


def _links(config: Config) -> None:
    from gpuwaste.slurm.gpu_links import site_links

    site_links(config.estimate.links)
