"""Rows as JSON: no text brings a NUL into the store, whichever way it comes."""

import json

from hypothesis import example, given
from hypothesis import strategies as st

from gpuwaste.store.hub.json_rows import to_json

TEXTS = st.text(st.one_of(st.sampled_from('\0\\u0x"'), st.characters()))


@given(TEXTS)
@example("\\u0000")
@example("\\\0\0\\\\\0")
def test_only_nul_is_written_another_way(text: str) -> None:
    """A lake cannot join by a text with NUL: each is four visible characters, and all else is as it was."""
    (row,) = json.loads(to_json([{"raw": text}]))
    assert row["raw"] == text.replace("\0", "\\x00")
