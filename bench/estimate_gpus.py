"""Figure: steps on several GPUs predicted from one GPU, beside times that others have measured.

Two public sets: NeuSight's rows of GPT-2 large on four A100 with NVLink, and Pollux' rows of five models on nodes of
four T4 (AWS g4dn.12xlarge, 50 Gbit/s of TCP). The step on one GPU is the measured one: only what several GPUs add to it
is judged. Pollux does not have its models' sizes: gradients are the parameters that their papers publish, 4 bytes each.
The factor SLOWER of the range was chosen on the rows of one node; the last lines leave out one model after another.
"""

import argparse
import csv
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean, median
from typing import Final, NamedTuple

from gpuwaste.estimate.estimate_types import StepTime
from gpuwaste.estimate.program import Buffer, Op, Program
from gpuwaste.estimate.several_gpus import SLOWER, Spread, several_gpus
from gpuwaste.slurm.gpu_links import SiteLinks, site_links

PROFILES: Final = Path("../shared/data/profiles")
GPT2_LARGE: Final = 774e6
"""Parameters (Radford et al. 2019)."""
PARAMETERS: Final = {
    "bert": 110e6,  # base, Devlin et al. 2019
    "cifar10": 11.2e6,  # ResNet-18 for 32 x 32 pixels, He et al. 2016
    "deepspeech2": 38e6,  # Amodei et al. 2016, the smallest published
    "imagenet": 25.6e6,  # ResNet-50, He et al. 2016
    "yolov3": 61.9e6,  # Redmon and Farhadi 2018
}
"""Of Pollux' models (Qiao et al., OSDI 2021, table 1); its sixth, NCF, has no published size at these settings."""


_INSIDE: Final = 0.95


class Row(NamedTuple):
    """A measured step on several GPUs and its prediction, seconds."""

    case: str
    spread: Spread
    one_s: float
    found: StepTime
    measured_s: float

    @property
    def error(self) -> float:
        """Relative error of the estimate."""
        return (self.found.step_s or 0.0) / self.measured_s - 1

    @property
    def inside(self) -> bool:
        """Whether the measured step is in the range."""
        return (self.found.low_s or 0.0) <= self.measured_s <= (self.found.high_s or 0.0)


def program(parameters: float, largest_b: int = 0) -> Program:
    """Return a program whose copies exchange so many gradients in FP32."""
    buffers = [Buffer(size_b=largest_b, first=0, last=0)] if largest_b else []
    return Program(
        name="", source="torch", ops=[Op(kind="mm")], buffers=buffers, parameters_b=0, outputs_b=0,
        fingerprint="0" * 64, training=True, gradient_b=int(parameters * 4),
    )  # fmt: skip


def one(gpu: str, step_s: float) -> StepTime:
    """Return a measured step as an estimate that is exact."""
    return StepTime(gpu=gpu, step_s=step_s, low_s=step_s, high_s=step_s)


def neusight(folder: Path) -> list[Row]:
    """Return GPT-2 large on four A100: copies with one sequence each, and a pipeline of one micro batch of four."""
    with (folder / "neusight" / "end_to_end.csv").open(newline="") as file:
        steps = {(row["device"], row["case"]): float(row["e2e_ms"]) / 1e3 for row in csv.DictReader(file)}
    single, four = (steps["NVIDIA_A100_80GB_PCIe", f"gpt2_large-train-1024-{batch}"] for batch in (1, 4))
    copies, staged = (steps["NVIDIA_A100-SXM4-40GB", f"gpt2_large-train-1024-4-{way}"] for way in ("dp4", "pp4_1"))
    logits_b = 4 * 1024 * 50257 * 4
    gpus, links = Spread(4), SiteLinks()
    asked = program(GPT2_LARGE, logits_b)
    return [
        Row("gpt2_large, copies", gpus, single, several_gpus(one("a100-40gb", single), asked, gpus, links), copies),
        Row(
            "gpt2_large, pipeline",
            gpus,
            four,
            several_gpus(one("a100-40gb", four), asked, gpus, links, micro_batches=1),
            staged,
        ),
    ]


def pollux(folder: Path, links: SiteLinks) -> Iterator[Row]:
    """Yield the measured placements with as many GPUs on each node, by model and batch size."""
    for model, parameters in PARAMETERS.items():
        steps = _steps(folder, model)
        alone = steps[Spread(1)]
        for spread, by_batch in steps.items():
            for batch, measured_s in by_batch.items():
                if spread.gpus > 1 and batch in alone:
                    found = several_gpus(one("t4", alone[batch]), program(parameters), spread, links)
                    yield Row(model, spread, alone[batch], found, measured_s)


def _steps(folder: Path, model: str) -> Mapping[Spread, dict[int, float]]:
    """Return seconds by placement and batch size of a GPU; a repeated row is the mean of its values."""
    found: dict[Spread, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    with (folder / f"pollux_{model}_placements.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if len(set(row["placement"])) == 1:  # digits: GPUs of each node
                spread = Spread(sum(map(int, row["placement"])), len(row["placement"]))
                found[spread][int(row["local_bsz"])].append(float(row["step_time"]))
    with (folder / f"pollux_{model}_scalability.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            gpus, nodes = int(row["num_replicas"]), int(row["num_nodes"])
            if gpus % nodes == 0:
                found[Spread(gpus, nodes)][int(row["local_bsz"])].append(float(row["step_time"]))
    return {spread: {batch: fmean(values) for batch, values in by_batch.items()} for spread, by_batch in found.items()}


def network_of(folder: Path, model: str = "imagenet") -> float:
    """Return the network's GB/s as one model shows it: the smallest batch on two nodes of one GPU, full overlap.

    Takes the place of a site's own figure of nccl-tests, which Pollux does not publish; that row's model is left out.
    """
    steps = _steps(folder, model)
    batch = min(steps[Spread(1)])
    alone, two = steps[Spread(1)][batch], steps[Spread(2, 2)][batch]
    return PARAMETERS[model] * 4 / (two - alone + alone * 2 / 3) / 1e9


def summary(title: str, rows: list[Row]) -> dict[str, float]:
    """Print a line of figures and return it."""
    errors = [abs(row.error) for row in rows]
    found = {
        "rows": len(rows),
        "mean": round(fmean(errors), 3),
        "median": round(median(errors), 3),
        "bias": round(fmean(row.error for row in rows), 3),
        "no_exchange": round(fmean(abs(row.one_s / row.measured_s - 1) for row in rows), 3),
        "inside": round(fmean(row.inside for row in rows), 3),
    }
    shares = "".join(f"{100 * value:>13.1f}" for name, value in found.items() if name != "rows")
    print(f"{title:<46}{len(rows):>6}{shares}")
    return found


def left_out(rows: list[Row]) -> dict[str, list[float]]:
    """Print and return by model the factor that the other models give, and the share of its rows in that range."""
    found = {}
    for model in PARAMETERS:
        ends = sorted(row.measured_s * SLOWER / (row.found.high_s or 0.0) for row in rows if row.case != model)
        factor = max(1.0, ends[int(_INSIDE * len(ends))])
        own = [row for row in rows if row.case == model]
        inside = fmean(
            (row.found.low_s or 0) <= row.measured_s <= (row.found.high_s or 0) / SLOWER * factor for row in own
        )
        found[model] = [round(factor, 3), round(inside, 3)]
        print(f"one node, factor from the models other than {model}: {factor:.2f}, {inside:.0%} in the range")
    return found


def main() -> int:
    """Predict and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profiles", type=Path, default=PROFILES, help="folder with neusight/ and pollux_*.csv")
    folder = parser.parse_args().profiles
    rows = neusight(folder)
    print(f"{'NeuSight, ms':<22}{'measured':>10}{'estimate':>10}{'low':>8}{'high':>8}{'error, %':>10}")
    for row in rows:
        low, middle, high = (1e3 * (each or 0) for each in (row.found.low_s, row.found.step_s, row.found.high_s))
        shown = f"{1e3 * row.measured_s:>10.0f}{middle:>10.0f}{low:>8.0f}{high:>8.0f}"
        print(f"{row.case:<22}{shown}{100 * row.error:>+10.1f}")
    heads = ("mean error", "median", "bias", "one GPU's", "in the range")
    print(f"\n{'Pollux, all but rows in %':<46}{'rows':>6}" + "".join(f"{head:>13}" for head in heads))
    sheet, own = list(pollux(folder, site_links(["node=6.25"]))), network_of(folder)
    measured = list(pollux(folder, site_links([f"node={own:.2f}"])))
    found: dict[str, object] = {
        "network_gb_s": round(own, 2),
        "neusight": [[row.case, round(row.error, 3)] for row in rows],
    }
    groups = {
        "one node": [row for row in sheet if row.spread.nodes == 1],
        "several nodes, 50 Gbit/s by data sheet": [row for row in sheet if row.spread.nodes > 1],
        f"several nodes, {own:.2f} GB/s as imagenet shows": [
            row for row in measured if row.spread.nodes > 1 and row.case != "imagenet"
        ],
    }
    for title, group in groups.items():
        found[title] = summary(title, group)
        for model in PARAMETERS:
            if of_model := [row for row in group if row.case == model]:
                summary(f"  {model}", of_model)
    found["left_out"] = left_out(groups["one node"])
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
