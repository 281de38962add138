"""Writes the coefficients of step times that are shipped: python -m tools.public_times FOLDER.

FOLDER has neusight/ and timm/ as in ../shared/data/profiles. Nothing of the measurements enters the file. About three
minutes; the figures are printed by `make bench NAME=estimate`.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import msgspec

from gpuwaste.estimate.public import coefficients
from gpuwaste.models.public_times.fit_all import Fits, PublicMeasurements
from gpuwaste.models.public_times.publish import rounded, shipped_coefficients


def main() -> int:
    """Fit and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path(coefficients.__file__).with_name(coefficients.FILE))
    options = parser.parse_args()
    fits = Fits(PublicMeasurements.read(options.folder))
    found = shipped_coefficients(fits, time.strftime("%Y-%m-%d", time.gmtime()))
    options.output.write_text(json.dumps(rounded(msgspec.to_builtins(found)), indent=1) + "\n")
    sys.stdout.write(f"{options.output}: {options.output.stat().st_size} bytes; widths {found.widths}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
