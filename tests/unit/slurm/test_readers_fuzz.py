"""Every reader of outside text: whatever the text, a value or one clear error, never anything else."""

from collections.abc import Callable
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.units import parse_duration_s, parse_size_b
from gpuwaste.slurm.accounting import requested, tres_amounts
from gpuwaste.slurm.accounting.rest_value import load
from gpuwaste.slurm.accounting.sacct_file import header_columns, hint
from gpuwaste.slurm.accounting.sacct_rows import FIELDS, BadRow, parse_sacct
from gpuwaste.slurm.accounting.tres_amounts import parse_weights
from gpuwaste.slurm.clients.slurmctld_jobs import parse_jobs
from gpuwaste.slurm.formats import csv_mapping, slurm_times
from gpuwaste.slurm.formats.csv_mapping import parse_mapping
from gpuwaste.slurm.formats.gpu_positions import job_gres_on_node, parse_gres, parse_positions, parse_slurmd_g
from gpuwaste.slurm.formats.printed_run import parse_printed
from gpuwaste.slurm.formats.swf_log import read_swf
from gpuwaste.slurm.site import associations
from gpuwaste.slurm.site import site_fields as hardware
from gpuwaste.slurm.site import slurm_values as values
from gpuwaste.slurm.site.site_fields import parse_config, parse_nodes, parse_partitions

READERS: dict[str, tuple[Callable[[str], object], list[str]]] = {
    "time": (slurm_times.parse_time_s, ["2024-01-01T10:00:00", "+25:61", "Unknown", "9" * 13, "0000-00-00T00:00:00"]),
    "time in a zone": (
        lambda text: slurm_times.parse_interval_s(text, text, 3600, ZoneInfo("Europe/Oslo")),
        ["2024-10-27T02:30:00", "2024-03-31T02:30:00", "9999-12-31T23:59:59", "0001-01-01T00:00:00"],
    ),
    "processor time": (slurm_times.parse_cpu_s, ["1-02:03:04", "03:04.123", "::", "INVALID"]),
    "duration": (parse_duration_s, ["1-02:03:04", "UNLIMITED", "Partition_Limit", "90", "-", "1-"]),
    "size": (parse_size_b, ["4G", "1.5T", "9" * 20 + "E", "K", "1e9"]),
    "request for memory": (
        lambda text: (requested.each_b(text), requested.total_b(text, 2, 8)),
        ["64Gn", "4000Mc", "2147486448Mn", "9223372036854778608M", "?", "0n", "nc", "2.00P"],
    ),
    "request of older columns": (
        lambda text: requested.request_tres({"ReqCPUS": text, "ReqMem": text, "ReqNodes": text, "ReqGRES": text}),
        ["gpu:2", "gpu:v100:2", "4Gn", "7"],
    ),
    "TRES": (
        lambda text: tres_amounts.gpu_count(tres_amounts.parse_tres(text)),
        ["cpu=4,mem=62.50G", "gres/gpu:a100=2", "=", ",,", "a="],
    ),
    "TRES of a CSV file": (
        lambda text: csv_mapping.read_tres(text, {"1002": "gres/gpu"}),
        ["1=4,2=8000,1002=1", "{1=2}"],
    ),
    "printed id": (parse_printed, ["3_1", "3_[0-9%2]", "4+1", "_", "7.batch"]),
    "GRES": (
        lambda text: (parse_gres(text), job_gres_on_node(text)),
        ["gpu:a100:2(IDX:0-1)", "gpu:4(S:0-1)", "shard:8(5/5,-/5)", "(null)", "gpu:", "((", "craynetwork:4K"],
    ),
    "GRES positions": (parse_positions, ["0-1,3", "1023", "3-1", "0-99999999", "-"]),
    "levels of sacctmgr": (associations.parse_admin_levels, ["alice|None\n", "root|Administrator", "|", "a|b|c"]),
    "associations of sacctmgr": (associations.parse_places, ["gw|proj1|root|\n", "gw|proj1||bob\n", "|,||"]),
    "clusters of sacctmgr": (associations.parse_clusters, ["gw\n", "|,"]),
    "coordinators of sacctmgr": (associations.parse_coordinators, ["proj1|carol,bob\n", "proj1|\n", "|,|"]),
    "table of sacctmgr": (
        lambda text: associations.parse_table(text, associations.USAGE, "sshare"),
        ["root|||0\n", " a|u||12\n", "|", "a|b|c|d|e"],
    ),
    "TRES of a machine": (tres_amounts.tres_amounts, ["cpu=4,mem=2G", "gres/gpu=2", "mem=7B", "=", "cpu=-1"]),
    "weights of a machine": (parse_weights, ["CPU=1.0,Mem=0.25G", "gres/gpu=2e3", "cpu=nan", "mem=1e999G"]),
    "size of a machine": (values.size, ["512G", "7B", "9" * 20 + "E", "-1", "0"]),
    "GPUs of a machine": (hardware.gpus_of, ["gpu:a100:4(S:0-1)", "gpu", "shard:8", "gpu:-1"]),
    "scontrol show job": (
        parse_jobs,
        ["JobId=7 JobName=train\n   UserId=a(1) ", "   JobState=RUNNING\n", "Nodes=n1 GRES="],
    ),
    "scontrol show config": (parse_config, ["ClusterName = gw\n", "SLURM_VERSION = 22.05.8\n", "=\n"]),
    "scontrol show partition": (
        parse_partitions,
        ["PartitionName=gpu\n", "   OverSubscribe=NO MaxTime=x\n", "Nodes=n[1-4]\n"],
    ),
    "scontrol show node": (
        parse_nodes,
        ["NodeName=n1 ", "Gres=gpu:4(S:0)\n", "RealMemory=1 State=IDLE\n", "GresUsed=gpu:x:1(IDX:9-1)\n"],
    ),
    "slurmd -G": (
        parse_slurmd_g,
        [
            "Gres Name=gpu Type=a100 Count=4 Index=0 ",
            "File=/dev/nvidia[0-3]\n",
            "File=/dev/nvidia[3-0]\n",
            "Count=99999\n",
        ],
    ),
    "a header": (
        lambda text: header_columns(text.encode("utf-8", "surrogatepass"), b"|"),
        ["JobID|", "Submit", "%20", "\ufeff"],
    ),
    "a first line": (
        lambda text: hint(text.encode("utf-8", "surrogatepass"), b"---- ---\n"),
        ["JobID", ",", "\t", '"'],
    ),
    "a mapping": (
        lambda text: parse_mapping(text, "m.toml"),
        [
            "[columns]\n",
            "job_id = 'a'\n",
            "submit = 'b'\n",
            "[tres]\n1002 = ''\n",
            "[units]\nexit_code = 'wait'\n",
            "zone = '/'\n",
        ],
    ),
    "JSON": (
        lambda text: load(text.encode("utf-8", "surrogatepass")),
        ['{"jobs": [', "]}", '"\\ud800"', "[" * 2000, "1e999"],
    ),
}


@pytest.mark.parametrize("name", READERS)
@given(data=st.data())
def test_any_text_is_a_value_or_an_error_of_ours(name: str, data: st.DataObject) -> None:
    """Pieces of what is expected, and anything else, in any order."""
    read, known = READERS[name]
    pieces = (
        st.sampled_from(known)
        | st.text(max_size=30)
        | st.sampled_from(["\0", "\x85", "\u2028", "\ud800", "\u0663", "\xb2"])
    )
    text = "".join(data.draw(st.lists(pieces, max_size=8)))
    message = ""
    try:
        read(text)
    except GpuwasteError as error:
        message = str(error)
    assert "\n" not in message, "an error is one line"


@given(
    st.lists(st.lists(st.sampled_from(["-1", "0", "7", "1e3", "9" * 30, "nan", "x", "\xff", "3.5", ";"]), max_size=19))
)
def test_any_line_of_a_log_is_a_run_or_a_bad_row(lines: list[list[str]]) -> None:
    """Numbers of every kind in the columns of the Standard Workload Format."""
    facts, rows = read_swf([" ".join(line).encode("latin-1") + b"\n" for line in lines], "log")
    found = list(rows)
    assert facts.rows + facts.bad + facts.partial <= len(lines)
    assert sum(isinstance(row, BadRow) for row in found) == facts.bad


@given(
    st.lists(
        st.dictionaries(st.sampled_from(FIELDS), st.text(max_size=12) | st.sampled_from(["1|2", "\n", "4Gn", "7"]))
    )
)
def test_any_column_of_sacct_is_a_run_or_a_bad_row(changes: list[dict[str, str]]) -> None:
    """Whatever a column holds; the rows after it are read."""
    good = {"JobIDRaw": "7", "JobID": "7", "Submit": "1700000000", "State": "COMPLETED"}
    rows = ["|".join((good | change).get(name, "") for name in FIELDS) for change in [*changes, {"JobIDRaw": "99"}]]
    lines = "".join(f"{row}\n" for row in rows).encode("utf-8", "surrogatepass").splitlines(keepends=True)
    found = list(parse_sacct(lines, "gw", FIELDS, b"|"))
    assert not isinstance(found[-1], BadRow)
    assert found[-1].job_id == 99
