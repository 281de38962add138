"""Tokens of hubs on one lake, in a real PostgreSQL: given by one hub, good at each, taken once, and bounded."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from gpuwaste.core.errors import StoreError
from gpuwaste.hub.sign_in.lake_tokens import LakeTokens, tokens_of
from gpuwaste.hub.sign_in.token_table import TokenLimits, new_token
from gpuwaste.store.lake_catalog import LakeCatalog
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.postgres_server import PostgresServer, postgres_server

LIMITS = TokenLimits(per_user=3, in_all=5, life_s=100_000, idle_s=40_000)  # a busy host makes no difference
NOT_TOKENS = ("", "x" * 43, "x" * 42 + "'", "\udc80" * 43, "é" * 43)


class Hubs(NamedTuple):
    """Two hubs of a lake, and a look at what they keep."""

    one: LakeTokens
    other: LakeTokens
    catalog: LakeCatalog

    def age(self, seconds: int) -> None:
        """Let time pass: each row becomes so much older."""
        older = f"- interval '{seconds} s'"
        self.catalog.tell(f"UPDATE gpuwaste_tokens SET made = made {older}, used = used {older}")  # noqa: S608


@pytest.fixture
def hubs(postgres: PostgresServer) -> Iterator[Hubs]:
    database = postgres.new_database()
    catalogs = [tokens_of(database) for _ in range(3)]
    yield Hubs(LakeTokens(catalogs[0], "session", LIMITS), LakeTokens(catalogs[1], "session", LIMITS), catalogs[2])
    for catalog in catalogs:
        catalog.close()


def test_a_token_of_one_hub_is_good_at_the_other_until_it_is_taken(hubs: Hubs) -> None:
    """Used and looked at anywhere, taken once; what was never given is nobody's, and other kinds are other tokens."""
    token = hubs.one.give("alice")
    assert [hubs.other.use(token), hubs.other.peek(token), hubs.one.use(token)] == ["alice"] * 3
    assert LakeTokens(hubs.catalog, "link", LIMITS).take(token) is None
    assert [hubs.other.take(token), hubs.one.take(token), hubs.one.use(token)] == ["alice", None, None]
    for other in (*NOT_TOKENS, token[:-1]):
        assert [hubs.one.use(other), hubs.one.peek(other), hubs.one.take(other)] == [None] * 3


@pytest.mark.parametrize("user", ["o'brien", "'; DROP TABLE gpuwaste_tokens; --", "{kind}", "a\\'b", "näher", '"'])
def test_a_name_is_only_a_name(hubs: Hubs, user: str) -> None:
    """Quotes, braces, backslashes and UTF-8 of a user's name come back as they went."""
    assert hubs.other.use(hubs.one.give(user)) == user
    assert hubs.one.count() == 1


def test_a_lifetime_ends_and_idle_time_ends_it_earlier(hubs: Hubs) -> None:
    """A token that is used at either hub ends after its lifetime, one that is only looked at after its idle time."""
    token, looked_at = hubs.one.give("alice"), hubs.one.give("alice")
    for hub in (hubs.other, hubs.one, hubs.other):
        hubs.age(30_000)
        assert hub.use(token) == "alice"
        hub.peek(looked_at)
    assert hubs.one.use(looked_at) is None
    hubs.age(9_000)
    assert hubs.one.use(token) == "alice"
    hubs.age(1_000)
    assert [hubs.one.use(token), hubs.one.take(token)] == [None, None]


def test_a_user_takes_no_place_of_others(hubs: Hubs) -> None:
    """A user's surplus token ends that user's oldest, not another user's, and the one in use stays."""
    other = hubs.one.give("bob")
    given = []
    for hub in (hubs.one, hubs.other, hubs.one):
        hubs.age(5_000)
        given.append(hub.give("alice"))
    assert hubs.other.use(given[0]) == "alice"
    hubs.other.give("alice")
    assert [hubs.one.use(token) for token in (other, *given)] == ["bob", "alice", None, "alice"]


def test_there_are_no_more_than_the_limit_in_all(hubs: Hubs) -> None:
    """Twenty users leave as many tokens as there may be, the newest; expired ones take no room."""
    given = [hubs.one.give(f"user{number}") for number in range(20)]
    assert hubs.other.count() == 5
    assert [hubs.one.use(token) is not None for token in given] == [False] * 15 + [True] * 5
    hubs.age(40_000)
    hubs.one.give("alice")
    assert hubs.one.count() == 1


def test_what_is_kept_is_no_token(hubs: Hubs) -> None:
    """Who reads the table can sign in as nobody."""
    token = hubs.one.give("alice")
    assert token not in repr(hubs.catalog.ask("SELECT row::text FROM gpuwaste_tokens AS row"))


def test_takers_of_both_hubs_at_once_get_it_once(hubs: Hubs) -> None:
    """Of eight threads of two hubs that take one token at the same time, one gets it."""
    for _ in range(5):
        token = hubs.one.give("alice")
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda hub, token=token: hub.take(token), [hubs.one, hubs.other] * 4))
        assert sorted(map(str, found)) == [*["None"] * 7, "alice"]


def test_made_up_tokens_cost_postgresql_nothing() -> None:
    """A cookie that no hub of the lake made is nobody's, without a question: also while PostgreSQL is away.

    A text that a hub did make is asked for; one changed letter is enough to make it a made-up one.
    """
    with postgres_server() as server:
        hub = LakeTokens(tokens_of(server.new_database()), "session", LIMITS)
        token = hub.give("alice")
        server.kill()
        changed = ("A" if token[0] != "A" else "B") + token[1:]
        for made_up in (changed, *NOT_TOKENS, *(new_token() for _ in range(1000))):
            assert [hub.use(made_up), hub.peek(made_up), hub.take(made_up)] == [None] * 3
        wait_until(lambda: asks(hub, token), 30, "the last backend to end")
        server.start()
        assert hub.use(token) == "alice"
        hub.close()


def asks(hub: LakeTokens, token: str) -> bool:
    """Tell whether a token is asked for at a PostgreSQL that is away."""
    try:
        return hub.use(token) is None
    except StoreError:
        return True


def test_sessions_outlast_a_restart_of_postgresql() -> None:
    """A connection that ended unnoticed is made anew; while nothing answers, the error says what was asked."""
    with postgres_server() as server:
        tokens = LakeTokens(tokens_of(server.new_database()), "session", LIMITS)
        token = tokens.give("alice")
        server.kill()

        def refused() -> bool:
            try:
                return tokens.use(token) is None
            except StoreError as error:
                return str(error).startswith("the sessions of the lake's hubs: ")

        wait_until(refused, 30, "the last backend to end")  # it may outlive the server for a moment
        server.start()
        assert tokens.use(token) == "alice"
        server.kill()
        server.start()
        assert tokens.use(token) == "alice", "the first call after a restart"
        tokens.close()
