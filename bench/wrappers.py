"""Figure: the study of wrappers: its sweeps (ten minutes), its page, its pictures and the table of plans.

Sweeps that were interrupted go on where they stopped (build/wrappers). The log of CEA-Curie is a public one (`make
data`).
"""

import argparse
from pathlib import Path
from typing import Final

from tools.data.places import find

from bench.wrappers_charts import draw
from bench.wrappers_page import page
from bench.wrappers_table import write_table
from gpuwaste.cli.main import main as command
from gpuwaste.store.duckdb_connection import connect

ROOT: Final = Path(__file__).parents[1]
STUDIES: Final = ROOT / "bench" / "studies"
PAGE: Final = ROOT / "docs" / "explanation" / "wrappers.md"
LOG: Final = "swf/CEA-Curie-2011-2.1-cln.recon.swf.xz"
_SWEEPS: Final = ("static", "loads", "dynamic")


def main() -> int:
    """Run what is left of the sweeps and write what comes of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "wrappers", help="directory of the results")
    parser.add_argument("--threads", default="2")
    options = parser.parse_args()
    log = find(LOG)
    if log is None:
        print("no log of CEA-Curie here: run `make data`")
        return 1
    db = connect()
    db.execute("set threads = 1")
    options.output.mkdir(parents=True, exist_ok=True)
    for name in _SWEEPS:
        study = options.output / f"{name}.toml"
        study.write_text((STUDIES / f"wrappers_{name}.toml").read_text().replace(f'"{log.name}"', f'"{log.resolve()}"'))
        into = options.output / name
        if code := command(["simulate", "sweep", str(study), "-o", str(into), "--threads", options.threads]):
            return code
        db.from_parquet(str(into / "results.parquet")).create_view(name)
    draw(db, log)
    write_table(db)
    PAGE.write_text(page(db))
    print(f"{PAGE.relative_to(ROOT)}: written")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
