"""Keys of history: a text stands for itself, and a name loses its digits only where letters are left to know it by."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.examples import examples

from gpuwaste.advice.predict.features import FEATURES
from gpuwaste.advice.predict.text_facts import NAME_FACTS
from gpuwaste.advice.predict.vectors import replay_vectors, vectors_of
from gpuwaste.jobs.history.history_keys import KEYS, key_columns, keys_of, text_hash
from gpuwaste.jobs.history.history_state import HistoryState
from gpuwaste.jobs.history.job_names import NAME_LENGTH, normal_name
from gpuwaste.jobs.history.job_table import Categories, JobTable
from gpuwaste.jobs.history.outcome import Outcome
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.testing.histories import made_table, requests, tell

AT = {feature.name: place for place, feature in enumerate(FEATURES)}
KEYED = [place for name, place in AT.items() if name not in NAME_FACTS]  # all but the facts of the name's own text
USERS = 4
NAMES = 4 * USERS  # of made_table
# Names of which no two are folded into one: digits, digits with what parts them, letters.
EXACT = st.one_of(
    st.text("0123456789", min_size=1, max_size=10),
    st.text("0123456789-_.:", min_size=1, max_size=10),
    st.text("abcdefgh-_", min_size=1, max_size=10),
)


def named(table: JobTable, names: list[str], users: list[str]) -> JobTable:
    """Return the table with other names of jobs and users: the same rows have the same one."""
    return replace(
        table,
        name=Categories(table.name.codes, tuple(names)),
        user=Categories(table.user.codes, tuple(users)),
        account=Categories(table.account.codes, (*(f"{user}." for user in users), "")),
    )


def keyed(vectors: NDArray[np.float32]) -> bytes:
    """Return the bits of what does not rest on a name's own text."""
    return np.where(np.isnan(vectors), np.float32(np.nan), vectors)[:, KEYED].tobytes()


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    one=st.lists(EXACT, min_size=NAMES, max_size=NAMES, unique=True),
    other=st.lists(EXACT, min_size=NAMES, max_size=NAMES, unique=True),
    users=st.lists(st.text(max_size=8), min_size=USERS, max_size=USERS, unique=True),
    seed=st.integers(0, 1000),
)
def test_renaming_changes_no_history(one: list[str], other: list[str], users: list[str], seed: int) -> None:
    """Whatever names are called, digits alone or letters, the same jobs have the same history, online and offline."""
    table = made_table(60, users=USERS, seed=seed)
    first = named(table, one, [f"u{n}" for n in range(USERS)])
    second = named(table, other, users)
    expected = keyed(replay_vectors(first).vectors)
    assert keyed(replay_vectors(second).vectors) == expected
    assert keyed(tell(second, HistoryState())) == expected


@pytest.mark.parametrize(
    ("name", "folded"),
    [
        ("20260412", "20260412"),
        ("184", "184"),
        ("2026-04-12", "2026-04-12"),
        ("12.5_3", "12.5_3"),
        ("٣٤", "٣٤"),
        ("Train_17", "train_#"),
        ("name20260412", "name#"),
        ("7B-sft.2", "#b-sft.#"),
        ("run", "run"),
        ("", ""),
    ],
)
def test_digits_are_folded_where_a_letter_is_left(name: str, folded: str) -> None:
    """Counters and dates in a name are one "#"; a name without a letter keeps them: nothing else tells it apart."""
    assert normal_name(name) == folded


def test_a_long_name_is_cut() -> None:
    """However long a name of digits is, what is kept of it is bounded."""
    assert normal_name("1" * 100_000) == "1" * NAME_LENGTH


def test_programs_named_by_numbers_have_a_history_of_their_own() -> None:
    """Where program 184 always fails and 185 never, each one's history says so."""
    state = HistoryState()
    for job in range(40):
        at, failed = 1_700_000_000 + 1000 * job, job % 2 == 0
        state.submitted(JobRequest("alice", at, name="184" if failed else "185"), job)
        state.started(job, at, at)
        state.ended(job, at, at + 100, 100.0, Outcome.FAILED if failed else Outcome.COMPLETED)
    found = vectors_of(state, [JobRequest("alice", 1_800_000_000, name=name) for name in ("184", "185")])
    assert found[:, AT["name_fail_all"]].tolist() == [1.0, 0.0]


def test_one_request_and_a_table_have_the_same_keys() -> None:
    """The hashes of single requests are those of the table's columns, for names of digits too."""
    table = made_table(50, users=USERS)
    table = named(table, [str(n) for n in range(NAMES)], ["7", "٣", "alice", ""])
    columns = key_columns(table)
    assert [keys_of(request) for request in requests(table)] == [
        [int(column[row]) for column in columns] for row in range(len(table))
    ]
    assert len(columns) == len(KEYS)


def test_a_text_has_the_same_number_everywhere() -> None:
    """Numbers travel between hosts in snapshots: they are the first eight bytes of SHA-256, the lowest one first."""
    assert text_hash("alice") == int.from_bytes(hashlib.sha256(b"alice").digest()[:8], "little")
    assert text_hash("\udcff") == int.from_bytes(hashlib.sha256(b"\xed\xb3\xbf").digest()[:8], "little")


def test_keys_are_made_in_fips_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """No hash is used that Python refuses on Enterprise Linux in FIPS mode."""

    def refused(*_: object, **__: object) -> None:
        raise ValueError("disabled for FIPS")

    for name in ("blake2b", "blake2s", "md5"):
        monkeypatch.setattr(hashlib, name, refused)
    assert len(keys_of(JobRequest("a user of this test alone", 1_800_000_000, name="a name of it"))) == len(KEYS)
