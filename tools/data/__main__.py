"""python -m tools.data [--into DIR] [--only PREFIX]: fetches public logs from their publishers, for tests."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from tools.data.catalog import CATALOG, read_catalog
from tools.data.fetch import DataError, HostError, fetch
from tools.data.places import own_place


def main(argv: Sequence[str]) -> int:
    """Fetch what is missing, a line for each file. Returns 1 where something could not be had."""
    parser = argparse.ArgumentParser(prog="make data", description=__doc__)
    parser.add_argument("--into", type=Path, default=own_place(), help="folder (default: $GPUWASTE_DATA, or data/)")
    parser.add_argument("--only", default="", metavar="PREFIX", help="files whose names begin so: swf/")
    parser.add_argument("--catalog", type=Path, default=CATALOG, help="another list of files")
    options = parser.parse_args(argv)
    items = [item for item in read_catalog(options.catalog) if item.name.startswith(options.only)]
    silent: set[str] = set()  # hosts that did not answer: one wait each
    failed = 0
    for item in items:
        host = urlsplit(item.url).netloc
        if host in silent:
            failed += _say(DataError(f"{item.name}: not asked for: {host} does not answer"))
            continue
        try:
            news = fetch(item, options.into)
            sys.stdout.write(f"{item.name}: {f'fetched; {item.terms}' if news else 'there already'}\n")
        except HostError as error:
            silent.add(host)
            failed += _say(error)
        except (DataError, OSError) as error:
            failed += _say(error)
    sys.stdout.write(f"{len(items) - failed} of {len(items)} files are in {options.into}\n")
    return 1 if failed else 0


def _say(error: DataError | OSError) -> int:
    sys.stderr.write(f"make data: {error}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
