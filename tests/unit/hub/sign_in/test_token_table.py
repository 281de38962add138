"""Tokens of users: what is good, for how long, how many, and what is kept of them."""

from concurrent.futures import ThreadPoolExecutor

from gpuwaste.hub.sign_in.token_table import TokenLimits, TokenTable
from gpuwaste.testing.clocks import FakeClock

LIMITS = TokenLimits(per_user=3, in_all=5, life_s=100, idle_s=40)


def table(clock: FakeClock | None = None) -> TokenTable:
    return TokenTable(LIMITS, clock or FakeClock())


def test_a_token_is_good_for_its_user_until_it_is_taken() -> None:
    """A token is used often and taken once; a text that was never given is nobody's."""
    tokens = table()
    token = tokens.give("alice")
    assert [tokens.use(token), tokens.use(token), tokens.take(token), tokens.take(token)] == [*["alice"] * 3, None]
    for other in ("", "x" * 43, token[:-1], token + "a", "\udc80" * 43, "é" * 43):
        assert tokens.use(other) is None


def test_a_lifetime_ends_and_idle_time_ends_it_earlier() -> None:
    """A token that is used every half minute ends after its lifetime, an unused one after its idle time."""
    clock = FakeClock()
    tokens = table(clock)
    token, unused = tokens.give("alice"), tokens.give("alice")
    for _ in range(3):
        clock.advance(30)
        assert tokens.use(token) == "alice"
    assert tokens.use(unused) is None
    clock.advance(9)
    assert tokens.use(token) == "alice"
    clock.advance(1)
    assert tokens.use(token) is None


def test_a_user_takes_no_place_of_others() -> None:
    """A user's surplus token ends that user's oldest, not another user's, and the one in use stays."""
    tokens = table()
    other = tokens.give("bob")
    given = [tokens.give("alice") for _ in range(3)]
    assert tokens.use(given[0]) == "alice"
    tokens.give("alice")
    assert [tokens.use(token) for token in (other, *given)] == ["bob", "alice", None, "alice"]


def test_there_are_no_more_than_the_limit_in_all() -> None:
    """A hundred users leave as many tokens as the table takes, the newest; expired ones take no room."""
    clock = FakeClock()
    tokens = table(clock)
    given = [tokens.give(f"user{number}") for number in range(100)]
    assert tokens.count() == 5
    assert [tokens.use(token) is not None for token in given] == [False] * 95 + [True] * 5
    clock.advance(40)
    tokens.give("alice")
    assert tokens.count() == 1
    assert list(tokens._of_user) == ["alice"]


def test_what_is_kept_is_no_token() -> None:
    """Nothing that the table keeps is a token: it cannot be read out of a dump of memory's tables."""
    tokens = table()
    token = tokens.give("alice")
    assert token not in repr(tokens.__dict__)
    assert all(len(digest) == 32 for digest in tokens._given)


def test_twenty_takers_at_once_get_it_once() -> None:
    """Of twenty threads that take one token at the same time, one gets it."""
    for _ in range(20):
        tokens = table()
        token = tokens.give("alice")
        with ThreadPoolExecutor(20) as pool:
            assert sorted(map(str, pool.map(tokens.take, [token] * 20))) == [*["None"] * 19, "alice"]
