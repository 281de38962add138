"""The pages of the hub over real HTTP: what each reader sees, in which form, with which headers."""

import csv
import gzip
import io
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.integration.hub.rig import Answer, Rig
from tests.unit.show.pages.parsed import without_spans

from gpuwaste.core.scope import Scope
from gpuwaste.core.units import DAY_S
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.appeals.appeal_service import Appeals
from gpuwaste.ledger.appeals.appeal_types import AppealOrder
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.row_deletion import delete_old, retentions
from gpuwaste.testing.hub_rows import HOUR, batch, hour, record

ALICE, BOB, CAROL, OPER = 1001, 1002, 1003, 1004
WINDOW = f"start={HOUR - DAY_S}&end={HOUR + DAY_S}"
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


class Page(HTMLParser):
    """The texts and the attributes of a page."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(without_spans(answer.body.decode()))
        self.text = " ".join(" ".join(self.texts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def all(self, tag: str, name: str) -> list[str]:
        """Return the values of an attribute."""
        return [value for found, attributes in self.tags if found == tag and (value := attributes.get(name))]


@pytest.fixture
def filled(hub: Rig) -> Rig:
    """Job 7 is alice's in proj1 with one idle GPU of two, job 8 bob's in proj2."""
    upsert_jobs(
        hub.store,
        [
            record(7, "alice", name="train", gpus=2, alloc_tres="cpu=4,gres/gpu=2", gpu_type="a100"),
            record(8, "bob", "proj2", name="<script>alert(1)</script>"),
        ],
    )
    idle = hour(7, gpu_uuid="GPU-z", util_ms={0: 1_800_000}, idle_run_ms=1_800_000)
    busy = hour(7, util_ms={90: 1_800_000}, proc_seen=True)
    assert hub.post(batch(busy, idle, hour(8, gpu_uuid="GPU-b"))).status == 200
    return hub


def page(rig: Rig, uid: int, target: str, status: int = 200) -> Page:
    """Return a page that has the headers of all pages."""
    answer = rig.page(uid, target)
    assert (answer.status, answer.headers["content-type"]) == (status, "text/html; charset=utf-8"), target
    assert answer.headers["content-security-policy"] == CSP
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "no-store"
    return Page(answer)


def test_a_user_sees_what_they_wasted_in_the_first_line(filled: Rig) -> None:
    """Half of alice's GPU-hour was idle; the job table names the job with the level of each GPU."""
    found = page(filled, ALICE, f"/me?{WINDOW}")
    assert (
        "0.50 of your 1.00 GPU-hours from 13 to 15 November 2023 were idle without a known reason (50 %)." in found.text
    )
    assert "/jobs/7" in found.all("a", "href")
    assert "bob" not in found.text
    assert {"high", "idle"} <= set(found.all("rect", "class"))


def test_no_page_has_inline_script_or_style(filled: Rig) -> None:
    """The policy forbids them, so that a page which needs one would be broken."""
    for target in (
        f"/me?{WINDOW}",
        "/jobs/7",
        "/verdicts",
        "/models",
        f"/accounts/proj1?{WINDOW}",
        "/jobs/4711",
        "/helpdesk?id=7",
    ):
        found = Page(filled.page(OPER, target))
        assert found.tags, target
        for tag, attributes in found.tags:
            assert tag != "style", target
            assert tag != "script" or attributes["src"], target
            assert not [name for name in attributes if name == "style" or name.startswith("on")], target


def test_a_name_of_a_job_is_text(filled: Rig) -> None:
    """Bob's job has a script as its name: it is printed, and is no element."""
    for target in (f"/me?{WINDOW}", "/jobs/8"):
        found = page(filled, BOB, target)
        assert "<script>alert(1)</script>" in found.text
        assert [a for t, a in found.tags if t == "script" and not a.get("src")] == []


def test_a_foreign_job_is_the_same_page_as_one_that_does_not_exist(filled: Rig) -> None:
    """Byte for byte, in each form; and bob sees his own."""
    nothing = filled.page(BOB, "/jobs/4711")
    assert nothing.status == 404
    assert "Not found." in nothing.body.decode()
    for target in ("/jobs/7", "/jobs/7.json", "/jobs/7.csv", "/users/alice", "/users/nobody", "/accounts/proj1"):
        answer = filled.page(BOB, target)
        assert (answer.status, answer.headers, answer.body) == (404, nothing.headers, nothing.body), target
    assert page(filled, BOB, "/jobs/8")


def test_a_coordinator_sees_their_account_and_an_operator_everybody(filled: Rig) -> None:
    """Carol coordinates proj1 and finds it in the navigation; the operator opens any user."""
    found = page(filled, CAROL, f"/accounts/proj1?{WINDOW}")
    assert "0.50 of 1.00 GPU-hours of account proj1 from 13 to 15 November 2023 were idle" in found.text
    assert "/accounts/proj1" in found.all("a", "href")
    assert page(filled, CAROL, f"/accounts/proj2?{WINDOW}", 404)
    assert "0.50 of 1.00 GPU-hours of user alice" in page(filled, OPER, f"/users/alice?{WINDOW}").text


def test_the_page_of_a_job_has_the_verdict_the_strip_and_the_numbers(filled: Rig) -> None:
    """One GPU of two was idle: the sentence says so, each GPU has its strip, its row and what was requested."""
    found = page(filled, ALICE, "/jobs/7")
    assert "Job 7 train" in found.text
    assert found.all("svg", "class").count("strip") == 2
    strips = [a for t, a in found.tags if t == "rect" and a.get("class") in {"high", "idle"} and a.get("x") == "0.000%"]
    assert [a["width"] for a in strips] == ["100.000%", "100.000%"]
    assert "GPU-z" in found.text
    assert "2 a100" in found.text


def test_a_page_is_packed_for_who_takes_gzip_and_is_the_same_for_others(filled: Rig) -> None:
    """A browser gets /me packed, as a program gets the report; without Accept-Encoding it comes as it is."""
    cookie = {"Cookie": filled.cookie(ALICE)}
    for target in (f"/me?{WINDOW}", f"/me.json?{WINDOW}"):
        plain = filled.send("GET", target, headers=cookie)
        packed = filled.send("GET", target, headers={**cookie, "Accept-Encoding": "gzip, br"})
        assert "content-encoding" not in plain.headers
        assert (packed.headers["content-encoding"], packed.headers["vary"]) == ("gzip", "Accept-Encoding")
        shown = gzip.decompress(packed.body)
        assert len(packed.body) < len(shown) / 2
        assert shown.startswith(plain.body[:60])


def test_one_node_of_a_job_can_be_asked_for(filled: Rig) -> None:
    """Its link leads to its curves; a node that is not the job's has none, and one that nothing can be is a 400."""
    assert "/jobs/7/curves.json?node=gpu1" in page(filled, ALICE, "/jobs/7?node=gpu1").all("a", "href")
    (run,) = filled.page(ALICE, "/jobs/7/curves.json?node=gpu1").json["runs"]
    assert [node["node"] for node in run["nodes"]] == ["gpu1"]
    assert filled.page(ALICE, "/jobs/7/curves.json?node=gpu2").status == 404
    assert filled.page(BOB, "/jobs/7?node=gpu1").status == 404
    assert filled.page(ALICE, f"/jobs/7?node={'x' * 300}").status == 400


def test_curves_of_the_page_are_within_the_reader_s_scope(filled: Rig) -> None:
    """The page of a job links its curves; who may not see the job gets the page for no job, and nobody needs gzip."""
    assert "/jobs/7/curves.json" in page(filled, ALICE, "/jobs/7").all("a", "href")
    mine = filled.page(ALICE, "/jobs/7/curves.json")
    assert (mine.status, mine.headers["cache-control"], mine.headers["content-security-policy"]) == (
        200,
        "no-store",
        CSP,
    )
    assert (mine.json["document"], mine.json["runs"][0]["nodes"][0]["state"]) == ("curves", "not_asked")
    packed = filled.send(
        "GET", "/jobs/7/curves.json", headers={"Cookie": filled.cookie(ALICE), "Accept-Encoding": "gzip"}
    )
    assert gzip.decompress(packed.body) == mine.body
    foreign, absent = (filled.page(BOB, f"/jobs/{job}/curves.json") for job in (7, 4711))
    assert (foreign.status, foreign.headers, foreign.body) == (404, absent.headers, absent.body)


def test_neighbours_are_listed_for_who_may_see_them_and_counted_for_others(hub: Rig) -> None:
    """Beside alice's job 7 on gpu[1-2] ran bob's on gpu2, her own on gpu1; not one before, nor one on another node."""
    begin, end = HOUR, HOUR + 1800
    upsert_jobs(
        hub.store,
        [
            record(7, "alice", nodes="gpu[1-2]", n_nodes=2, submit=begin - 9, start=begin, end=end),
            record(8, "bob", "proj2", nodes="gpu2", name="secret", submit=begin - 9, start=begin + 60, end=None),
            record(9, "alice", nodes="gpu1", name="mine", submit=begin - 9, start=begin - 60, end=begin + 1),
            record(10, "alice", nodes="gpu1", submit=begin - 999, start=begin - 900, end=begin),
            record(11, "alice", nodes="gpu3", submit=begin - 9, start=begin, end=end),
        ],
    )
    found = page(hub, ALICE, "/jobs/7")
    assert "2 other jobs ran on these nodes at the same time; 1 of other users." in found.text
    assert rows(found) == ["/jobs/7.csv", "/jobs/7.json", "/jobs/7/curves.json", "/jobs/9"]
    assert "secret" not in hub.page(ALICE, "/jobs/7").body.decode()
    assert "secret" not in hub.page(ALICE, "/jobs/7.json").body.decode()
    seen = hub.page(OPER, "/jobs/7.json").json["neighbours"]
    assert [(one["jobid"], one["user"], one["nodes"]) for one in seen["listed"]] == [
        ("9", "alice", ["gpu1"]),
        ("8", "bob", ["gpu2"]),
    ]
    assert (seen["jobid"], seen["runs"], seen["others"], seen["complete"]) == ("7", 2, 0, True)
    assert "2 other jobs ran on these nodes at the same time." in page(hub, OPER, "/jobs/7").text
    assert "1 other job ran on these nodes at the same time, of other users." in page(hub, BOB, "/jobs/8").text
    assert "No other job ran on these nodes at the same time." in page(hub, ALICE, "/jobs/11").text
    assert hub.get(OPER, "/v1/jobs/7").json["neighbours"] is None


def test_the_help_desk_has_cause_evidence_and_a_reply(filled: Rig) -> None:
    """An operator enters alice's job: the reply names her, the cause and the line; bob's is the page for no job."""
    assert "/helpdesk" in page(filled, OPER, "/helpdesk").all("a", "href")
    assert "/helpdesk" not in page(filled, ALICE, "/me").all("a", "href")
    found = page(filled, OPER, "/helpdesk?id=+7+")
    (reply,) = [value for value in found.all("button", "data-copy") if value.startswith("Hello alice,")]
    cause = filled.page(OPER, "/jobs/7.json").json["findings"][0]
    assert f"Cause: {cause['title']}." in reply
    assert f"\n  {cause['fix'][0]}\n" in reply
    assert reply.endswith("/jobs/7")
    assert reply.splitlines()[2].startswith("Job 7 train: 0.50 of its 1.00 GPU-hours were idle")
    nothing = filled.page(BOB, "/helpdesk?id=4711")
    for wanted in ("7", "x", "7' OR 1=1", "9" * 300):
        answer = filled.page(BOB, f"/helpdesk?{urlencode({'id': wanted})}")
        assert (answer.status, answer.body) == (404, nothing.body), wanted
    assert "No cause of waste was found." in page(filled, BOB, "/helpdesk?id=8").text


def test_the_time_before_is_asked_once(filled: Rig) -> None:
    """The sentence compares with as much time before; a second look uses what the first one found."""
    before = HOUR - 2 * DAY_S
    upsert_jobs(filled.store, [record(6, "alice", gpus=1, submit=before - 60, start=before, end=before + 1800)])
    used = hour(
        6, run_key=RunKey("gw", 6, before), hour_utc=before, t0_ms=before * 1000, t1_ms=before * 1000 + 1_800_000,
        util_ms={90: 1_800_000}, proc_seen=True,
    )  # fmt: skip
    assert filled.post(batch(used)).json["accepted"] == 1
    assert "Up from 0 % in as much time before." in page(filled, ALICE, f"/me?{WINDOW}").text
    upsert_jobs(filled.store, [record(6, "bob", gpus=1, submit=before - 60, start=before, end=before + 1800)])
    assert "Up from 0 % in as much time before." in page(filled, ALICE, f"/me?{WINDOW}").text
    longer = f"start={HOUR - DAY_S}&end={HOUR + DAY_S + 3600}"
    assert "as much time before" not in page(filled, ALICE, f"/me?{longer}").text


@pytest.mark.parametrize("view", ["/me", "/users/alice", "/jobs/7", "/verdicts"])
def test_each_view_is_json_and_csv_too(filled: Rig, view: str) -> None:
    """At the same path, for the same reader, with the headers of a page."""
    as_json = filled.page(ALICE, f"{view}.json?{WINDOW}")
    assert (as_json.status, as_json.headers["cache-control"]) == (200, "no-store")
    assert as_json.json["document"] in {"report", "job", "verdicts"}
    as_csv = filled.page(ALICE, f"{view}.csv?{WINDOW}")
    assert as_csv.headers["content-type"] == "text/csv; charset=utf-8"
    assert "recorded" in next(csv.reader(io.StringIO(as_csv.body.decode())))


def rows(found: Page) -> list[str]:
    """Return the jobs that a page links to."""
    return [href for href in found.all("a", "href") if href.startswith("/jobs/")]


def test_the_table_has_fifty_rows_a_page_and_filters(hub: Rig) -> None:
    """Of 60 jobs the first page has 50, the second the others; state, partition, name and finding pick."""
    jobs: list[Any] = [record(100 + n, "alice", name=f"job-{n}") for n in range(58)]
    jobs += [record(200, "alice", name="odd", partition="other"), record(201, "alice", name="odd", state="FAILED")]
    upsert_jobs(hub.store, jobs)
    first = page(hub, ALICE, f"/me?{WINDOW}")
    assert (len(rows(first)), "1-50 of 60" in first.text) == (50, True)
    following = next(href for href in first.all("a", "hx-get") if "page=2" in href)
    second = page(hub, ALICE, following)
    assert (len(rows(second)), "51-60 of 60" in second.text) == (10, True)
    assert not set(rows(first)) & set(rows(second))
    for query, expected in (
        ("partition=other", ["/jobs/200"]),
        ("state=FAILED", ["/jobs/201"]),
        ("name=ODD", ["/jobs/200", "/jobs/201"]),
        ("name=odd&state=COMPLETED&partition=&finding=", ["/jobs/200"]),
        ("finding=idle_tail", []),
    ):
        found = page(hub, ALICE, f"/me?{WINDOW}&{query}")
        assert sorted(rows(found)) == expected, query
    assert "No job matches this filter." in page(hub, ALICE, f"/me?{WINDOW}&name=%25").text


def test_a_window_without_jobs_says_so(filled: Rig) -> None:
    """Alice has no job in these days; the page offers more of them."""
    found = page(filled, ALICE, "/me?days=7")
    assert "You have no jobs with GPUs since " in found.text
    assert "/me?days=90" in found.all("a", "href")


@pytest.mark.parametrize(
    "query",
    [
        "days=8",
        "days=-1",
        "days=%C2%B2",
        "start=x",
        "start=9&end=3",
        "page=99999999999999999",
        "start=1e3",
        "name=" + "x" * 300,
    ],
)
def test_a_bad_parameter_is_a_page_that_names_it(filled: Rig, query: str) -> None:
    """Each is a 400 in the layout of all pages, with one line of what is wrong."""
    found = page(filled, ALICE, f"/me?{query}", 400)
    assert "This link is not valid." in found.text
    assert query.partition("=")[0] in found.text


def test_who_is_not_signed_in_is_told_the_command(filled: Rig) -> None:
    """Without a credential every page is 401 and names `gpuwaste web`; nothing else is in it."""
    for target in ("/me", "/jobs/7", "/users/alice", "/verdicts", "/models", "/me.json"):
        answer = filled.send("GET", target)
        assert answer.status == 401, target
        assert "gpuwaste web" in answer.body.decode()
        assert answer.headers["content-security-policy"] == CSP


def test_static_files_are_kept_for_a_year_under_the_name_of_their_content(filled: Rig) -> None:
    """Each file that a page refers to is there, for anybody; a name with another hash is not."""
    found = page(filled, ALICE, "/me")
    names = found.all("script", "src") + found.all("link", "href")
    assert len(names) == 4
    for name in names:
        answer = filled.send("GET", name)
        assert (answer.status, answer.headers["cache-control"]) == (200, "public, max-age=31536000, immutable"), name
        assert filled.send("GET", name.replace(name.split(".")[1], "0" * 12)).status == 404


def test_the_job_form_leads_to_the_job(filled: Rig) -> None:
    """A job id of an array or a het job too, and nothing outside of this site."""
    for text, path in (
        ("7", "/jobs/7"),
        ("3_1", "/jobs/3_1"),
        ("4%2B1", "/jobs/4+1"),
        ("//evil.example", "/jobs/%2F%2Fevil.example"),
    ):
        answer = filled.send("GET", f"/jobs?id={text}")
        assert (answer.status, answer.headers["location"]) == (303, path)
    assert filled.send("GET", "/").headers["location"] == "/me"
    assert filled.page(ALICE, "/metrics").headers["content-type"].startswith("text/plain")


def test_only_operators_see_scores(filled: Rig) -> None:
    """Precision and calibration are on the operator's pages and on no user's."""
    assert "How often they were right" in page(filled, OPER, "/verdicts").text
    assert "How often they were right" not in page(filled, ALICE, "/verdicts").text
    assert "shown to operators" in page(filled, ALICE, "/models").text


def said(rig: Rig, target: str, body: bytes) -> Answer:
    """Send a form of one of alice's pages."""
    return rig.send("POST", target, body, {"Cookie": rig.cookie(ALICE), "Sec-Fetch-Site": "same-origin"})


def test_the_owner_can_say_that_it_is_wrong(filled: Rig) -> None:
    """What they say last is on the page, in the JSON and on the operators' page; it is text, whatever is in it."""
    upsert_jobs(
        filled.store,
        [record(20 + n, "alice", array_job_id=20, array_task_id=n, printed_id=f"20_{n}") for n in range(3)],
    )
    assert "This is wrong" in page(filled, ALICE, "/jobs/20").text
    for words in ("said before", "<b>the GPUs were warm</b>"):
        answer = said(filled, "/jobs/20/appeal", urlencode({"words": f" {words}\n"}).encode())
        assert (answer.status, answer.headers["location"]) == (303, "/jobs/20#appeals")
    shown = page(filled, ALICE, "/jobs/20")
    assert "<b>the GPUs were warm</b>" in shown.text
    assert "said before" not in shown.text
    (kept,) = filled.page(OPER, "/jobs/20.json").json["appeals"]
    assert (kept["words"], kept["user"], kept["runs"]) == ("<b>the GPUs were warm</b>", "alice", 3)
    assert "the GPUs were warm" in page(filled, OPER, "/verdicts").text
    assert "the GPUs were warm" not in page(filled, ALICE, "/verdicts").text
    assert "This is wrong" not in page(filled, OPER, "/jobs/20").text


@pytest.mark.parametrize(
    ("target", "body", "status"),
    [
        ("/jobs/8/appeal", b"words=mine", 404),
        ("/jobs/4711/appeal", b"words=mine", 404),
        ("/jobs/20/appeal", b"words=+%0a+", 400),
        ("/jobs/20/appeal", b"", 400),
        ("/jobs/20/appeal", b"\xff\xfe", 400),
        ("/jobs/20/appeal", b"a&" * 100, 400),
        ("/jobs/20/appeal", b"words=" + b"x" * 501, 400),
        ("/jobs/20/appeal", b"words=" + b"x" * 2_000_000, 413),
    ],
)
def test_a_form_that_is_not_the_owner_s_or_not_whole_changes_nothing(
    filled: Rig, target: str, body: bytes, status: int
) -> None:
    """A foreign job is not found as an absent one; empty, broken and long texts are refused in the layout."""
    upsert_jobs(filled.store, [record(20, "alice")])
    answer = said(filled, target, body)
    assert (answer.status, answer.headers["content-security-policy"]) == (status, CSP)
    for job in (8, 20):
        assert filled.page(OPER, f"/jobs/{job}.json").json["appeals"] == []


def test_what_was_said_goes_with_the_verdicts_of_its_time(filled: Rig) -> None:
    """It is kept as long as verdicts are."""
    filled.hub.get(Appeals).appeal(Scope("alice"), AppealOrder(job="7", reason="x"))
    days = {kept.days: 1 for _, kept in retentions()}
    delete_old(filled.store, filled.clock, days)
    assert len(filled.page(ALICE, "/jobs/7.json").json["appeals"]) == 1
    delete_old(filled.store, filled.clock, dict.fromkeys(days, -1))
    assert filled.page(ALICE, "/jobs/7.json").json["appeals"] == []


def test_one_user_s_hundredth_page_waits_for_nobody(filled: Rig) -> None:
    """With all turns of alice taken her next page is 429 in the layout; an operator's is answered."""
    turns = filled.turns
    turns._busy["alice"] = turns._most
    found = page(filled, ALICE, "/me", 429)
    assert "Too many requests" in found.text
    assert page(filled, OPER, "/me")
