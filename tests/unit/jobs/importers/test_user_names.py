"""The site's table of users of other clusters: what it takes, and one line for each thing that it does not."""

import pytest

from gpuwaste.core.errors import ParseError
from gpuwaste.jobs.importers.user_names import MAX_NAMES, parse_user_names
from gpuwaste.testing.hub_rows import record

HEAD = b"cluster,user,person\n"


def test_a_user_of_another_cluster_is_one_of_the_hub_s_host() -> None:
    """Smith of east is alice; smith of other clusters, and who is not in the table, keep their names."""
    names = parse_user_names(HEAD + b"east, smith ,alice\n\neast,alice,alice2\n", "users.csv")
    users = [("east", "smith"), ("east", "alice"), ("west", "smith"), ("gw", "alice")]
    found = [names.renamed(record(1, user, cluster=cluster)).user for cluster, user in users]
    assert found == ["alice", "alice2", "smith", "alice"]
    assert names.without("east").renamed(record(1, "smith", cluster="east")).user == "smith"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "line 1: expected the columns cluster,user,person"),
        (b"user,person\na,b\n", "line 1: expected the columns"),
        (HEAD + b"east,smith\n", "line 2: expected three names"),
        (HEAD + b"east,smith,\n", "line 2: expected three names"),
        (HEAD + b"east,smith,a\x1b[0m\n", "line 2: expected three names"),
        (HEAD + b"east,smith," + b"a" * 257 + b"\n", "line 2: expected three names"),
        (HEAD + b"east,smith,a\neast,smith,b\n", "line 3: user smith of east for the second time"),
        (HEAD + b"gw,smith,a\n", "line 2: gw is the hub's own cluster"),
        (HEAD + b"east,\xff,a\n", "line 2 is not UTF-8"),
        (HEAD + b'east,"a,b\n', "line 2: unexpected end of data"),
        (HEAD + b"".join(b"east,u%d,a\n" % n for n in range(MAX_NAMES + 1)), f"more than {MAX_NAMES} names"),
    ],
)
def test_what_is_no_table_of_users_is_one_line(data: bytes, said: str) -> None:
    """The line names the file, the place and what was expected."""
    with pytest.raises(ParseError, match=r"users\.csv: ") as error:
        parse_user_names(data, "users.csv", "gw")
    assert said in str(error.value)
    assert "\n" not in str(error.value)
