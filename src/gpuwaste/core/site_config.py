"""Sections of gpuwaste.toml that more than one program reads: the site, its Slurm, its prices, its language model."""

from dataclasses import dataclass

from gpuwaste.core.typed_toml import key


@dataclass(frozen=True, slots=True)
class CommonConfig:
    """What every program of a site shares."""

    cluster: str = key("", "Slurm's ClusterName; empty: read from Slurm at start.")
    hub_url: str = key(
        "http://127.0.0.1:9461",
        "URL of the hub, for agents, advisor and commands; of each host that a hub may run on, separated by spaces.",
        site="http://admin1:9461",
    )
    hub_ca: str = key("", "PEM file of the CA that signed the hub's certificate; empty: the system's CAs.")
    munge_socket: str = key("", "Socket of munged; empty: munge's default.")
    slurm_conf: str = key("", "slurm.conf for the Slurm commands; empty: Slurm's default.")
    slurm_timeout_s: float = key(
        20.0, "Timeout of a Slurm command; for the actor 25 at most: a command must end before the actor's lease."
    )
    slurmrestd_url: str = key(
        "", "URL of slurmrestd, http(s)://HOST:PORT or unix:/PATH; empty: slurmrestd is not used."
    )
    slurmrestd_token_file: str = key("", "File with the JWT for slurmrestd; not readable by other users.")
    models_dir: str = key(
        "/var/lib/gpuwaste/models", "Registry of model bundles; the link champion points to the one in use."
    )
    campaigns_dir: str = key(
        "/etc/gpuwaste/campaigns.d",
        "Directory of campaigns, one TOML file each, the same on the hosts of hub and advisors.",
    )
    campaign_key_file: str = key(
        "",
        "File with the key that assigns users to campaigns, the same on these hosts; not readable by other users."
        " Empty: no campaigns.",
    )
    run_dir: str = key("/run/gpuwaste", "Directory of the daemons' sockets and of the agent's health file.")
    token_file: str = key(
        "", "File with the token of this node or user, at a site without munge; empty: munge is used."
    )


@dataclass(frozen=True, slots=True)
class SlurmClientConfig:
    """How history and single jobs are read from Slurm."""

    client: str = key(
        "",
        "commands, slurmrestd or pyslurm: reads accounting and single jobs; everything else is read with commands."
        " Empty: commands, with slurmrestd for single jobs if [common] slurmrestd_url is set.",
    )


@dataclass(frozen=True, slots=True)
class AnalyticsConfig:
    """Views of the whole system, and a language model of the site that may word their sentences."""

    model_url: str = key(
        "",
        "URL of an OpenAI-compatible server (vLLM, Ollama, llama.cpp), such as http://127.0.0.1:8000/v1; it gets"
        " sentences without values. Empty: sentences are written by rules.",
    )
    model: str = key("", "Name of the model on that server.")


@dataclass(frozen=True, slots=True)
class EnergyConfig:
    """What the energy of GPUs costs; without it, reports have only kilowatt-hours."""

    price_per_kwh: float = key(0.0, "Price of a kilowatt-hour, in the site's currency; 0: no costs are given.")
    currency: str = key("EUR", "Name of the currency, up to 8 characters.")
    pue: float = key(1.0, "Power usage effectiveness of the site, 1 to 10: energy, cost and CO2e are multiplied by it.")
    g_co2e_per_kwh: float = key(0.0, "Carbon intensity of the electricity, grams of CO2e per kWh; 0: none is given.")
    price_per_gpu_hour: float = key(
        0.0, "Price of a GPU-hour, in the same currency, for the value of measured savings; 0: no value is given."
    )
    hours_file: str = key(
        "",
        "CSV file with prices, carbon intensities or both by hour; an hour that it lacks is not known. A change of the"
        " file is read within a minute.",
    )


@dataclass(frozen=True, slots=True)
class EstimateConfig:
    """What `gpuwaste estimate` knows of the site; it is read on the host where the command runs."""

    prices: tuple[str, ...] = key(
        (),
        "Prices of a GPU-hour by GPU type, TYPE=NUMBER such as h100=2.5, all in one currency; empty: requests are"
        " compared by GPU-hours. Option --price overrides it.",
    )
    links: tuple[str, ...] = key(
        (),
        "Links for times on several GPUs: TYPE=LINK between the GPUs of a node, such as h100=nvlink4 or l4=pcie4, and"
        " node=LINK*ADAPTERS between nodes, such as node=hdr*2; LINK may be the GB/s that nccl-tests measured. Empty:"
        " the data sheet's link in a node, no time across nodes.",
    )
