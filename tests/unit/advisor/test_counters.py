"""What the plugins report of themselves, across late requests and restarts of slurmctld."""

from gpuwaste.advisor.advisor_counters import Counters


def totals(asked: int, missed: int) -> dict[str, int]:
    return {"asked": asked, "missed": missed}


def test_a_late_request_takes_nothing_back() -> None:
    """Totals that are a little smaller come from a request that was overtaken: the largest stand."""
    counters = Counters()
    for asked, missed in ((1000, 5), (999, 4), (1001, 5)):
        counters.reported("c", totals(asked, missed))
    assert (counters.plugin["c", "asked"], counters.plugin["c", "missed"]) == (1001, 5)


def test_after_a_restart_of_slurmctld_misses_are_seen_again() -> None:
    """Totals far below those before begin anew, so that a rate over them sees what happens now."""
    counters = Counters()
    counters.reported("c", totals(50_000, 900))
    counters.reported("lua", totals(50_000, 900))
    counters.reported("c", totals(3, 1))
    counters.reported("c", totals(4, 2))
    assert (counters.plugin["c", "asked"], counters.plugin["c", "missed"]) == (4, 2)
    assert counters.plugin["lua", "missed"] == 900


def test_what_is_no_total_is_passed_over() -> None:
    """Texts, negative numbers and unknown plugins change nothing."""
    counters = Counters()
    counters.reported("c", {"asked": "9", "missed": -1, "opened": True})
    counters.reported("x", totals(1, 1))
    counters.reported("c", None)
    assert counters.plugin == {}
