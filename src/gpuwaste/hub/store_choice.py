"""Which store the hub uses: one file in its state_dir, or a lake."""

import re
from pathlib import Path
from typing import Final

from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.hub_config import HubConfig
from gpuwaste.store.hub.hub_store import STORE_NAME, HubStore
from gpuwaste.store.hub.lake_store import LakeReader, LakeStore
from gpuwaste.store.hub.store_file import check_not_moved
from gpuwaste.store.lake_database import LakeLocation
from gpuwaste.store.lake_s3 import SCHEME, S3Keys, S3Place

SCRATCH: Final = "lake.tmp"
_SCRATCH_OF_READER: Final = "lake-read.tmp"  # its last reads may still run when the lake is opened to write
_PASSWORD: Final = re.compile(r"password\s*=|^postgres(ql)?://")


def lake_location(hub: HubConfig) -> LakeLocation | None:
    """Return where the hub's lake is, None where its store is a file. Raises ConfigError."""
    if hub.store == "file":
        return None
    if hub.store != "lake":
        raise ConfigError(f"[hub] store {hub.store!r}: expected file or lake")
    if not hub.lake_catalog:
        raise ConfigError("[hub] lake_catalog is empty: name the PostgreSQL database of the lake")
    if _PASSWORD.search(hub.lake_catalog):
        raise ConfigError("[hub] lake_catalog: expected keywords without a password: put it into libpq's passfile")
    if hub.lake_data.startswith(SCHEME):
        return LakeLocation(hub.lake_catalog, _s3_place(hub))
    data = Path(hub.lake_data)
    if not data.is_absolute():
        raise ConfigError(f"[hub] lake_data {hub.lake_data!r}: expected an absolute path, or s3://BUCKET/FOLDER")
    return LakeLocation(hub.lake_catalog, data)


def _s3_place(hub: HubConfig) -> S3Place:
    if not hub.lake_s3_keys_file:
        raise ConfigError("[hub] lake_s3_keys_file is empty: name the file with the keys of lake_data's bucket")
    keys = S3Keys.read(Path(hub.lake_s3_keys_file))
    url = hub.lake_data.rstrip("/")
    return S3Place(url, keys, hub.lake_s3_endpoint, hub.lake_s3_region, hub.lake_s3_ca_file)


def open_store(hub: HubConfig, clock: Clock) -> HubStore:
    """Open or create the hub's store. Raises ConfigError, StoreError."""
    lake, state_dir = lake_location(hub), Path(hub.state_dir)
    if lake is None:
        check_not_moved(state_dir / STORE_NAME)
        return HubStore.open(state_dir / STORE_NAME, clock, hub.memory_mb)
    return LakeStore.open_lake(lake, clock, state_dir / SCRATCH, hub.memory_mb)


def open_reader(location: LakeLocation, hub: HubConfig, clock: Clock) -> LakeReader:
    """Open the lake of another hub for reading. Raises StoreError."""
    return LakeReader.open_lake(location, clock, Path(hub.state_dir) / _SCRATCH_OF_READER, hub.memory_mb)
