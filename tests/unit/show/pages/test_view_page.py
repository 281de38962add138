"""The page of a view: a sentence, charts, 50 rows a page, how it is computed, whatever the names are."""

from html.parser import HTMLParser
from typing import Any
from zoneinfo import ZoneInfo

from tests.unit.show.pages.drawings import HOSTILE, LONG, bars
from tests.unit.show.pages.parsed import without_spans
from tests.unit.show.pages.view_documents import COLUMNS, view

from gpuwaste.show.environment import Frame
from gpuwaste.show.view_document import Column, Fact, ViewDocument
from gpuwaste.show.view_page import view_body, view_page

_VOID = frozenset({"meta", "link", "br", "input", "path", "rect", "circle"})


class Reading(HTMLParser):
    """What a browser finds in a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(without_spans(text))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        for tag in set(self._open):
            self.words.setdefault(tag, []).append(data)

    def said(self, tag: str) -> str:
        return " ".join("".join(self.words.get(tag, [])).split())

    def charts(self) -> list[dict[str, str | None]]:
        return [one for one in self.all("svg") if one.get("class") == "chart"]

    def foreign_scripts(self) -> list[dict[str, str | None]]:
        return [one for one in self.all("script") if not str(one.get("src")).startswith("/static/")]

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def page_link(number: int) -> str:
    return f"/analytics/waits?page={number}"


def read(document: ViewDocument, number: int = 1) -> Reading:
    links = {"csv": "/analytics/waits.csv", "json": "/analytics/waits.json", "svg": "/analytics/waits.svg"}
    return Reading(view_page(document, number, Frame(path="/analytics/waits", links=links), page_link))


def body(document: ViewDocument, number: int = 1, **options: Any) -> Any:
    return view_body(document, number, page_link, {}, **options)


def test_the_first_line_answers() -> None:
    """The heading is the first sentence of the view; the question, the window and the cluster follow."""
    found = read(view())
    assert found.said("h1") == "Half of the jobs waited 10 min or less."
    assert "How long do jobs wait? From Thu 1 Jan 2026 00:00 to Sun 1 Feb 2026 00:00 (UTC); cluster: c1." in found.said(
        "p"
    )
    assert "The queue is deepest on Tuesday." in found.said("p")


def test_each_chart_is_drawn_for_a_desk_and_a_telephone() -> None:
    """Two charts make four drawings; no id is there twice; nothing has a style or a script of its own."""
    found = read(view())
    assert len(found.all("figure")) == 2
    assert [drawing["width"] for drawing in found.charts()] == ["960", "328", "960", "328"]
    ids = [str(attributes["id"]) for _, attributes in found.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert not found.foreign_scripts()
    assert not found.all("style")
    assert not [attributes for _, attributes in found.tags if "style" in attributes]


def test_the_table_has_fifty_rows_a_page_with_links() -> None:
    """Pages go on where the last one ended, and a number that is not there is the nearest."""
    first, second, last = (body(view(), number) for number in (1, 2, 3))
    assert [len(one.rows) for one in (first, second, last)] == [50, 50, 20]
    assert [row[0].text for row in second.rows][::49] == ["user50", "user99"]
    assert first.pages == [("next", "/analytics/waits?page=2")]
    assert second.pages == [("previous", "/analytics/waits?page=1"), ("next", "/analytics/waits?page=3")]
    assert last.pages == [("previous", "/analytics/waits?page=2")]
    assert first.range == "Rows 1 to 50 of 127; 7 of them are not in the table"
    assert body(view(), 99).range == last.range
    assert body(view(), -5).range == first.range


def test_cells_have_their_units() -> None:
    """Times, durations, shares and numbers are printed as people write them; numbers are aligned to the right."""
    found = body(view())
    assert [cell.text for cell in found.rows[2]] == ["user2", "2026-01-03", "2", "3 min", "12 %", "0.67"]
    assert [(one.title, one.kind) for one in found.columns] == [
        ("User", "text"),
        ("First", "time"),
        ("Jobs", "number"),
        ("Median wait", "number"),
        ("Failed", "number"),
        ("Held, GPU-hours", "number"),
    ]
    assert found.zeros == "Timeouts"


def test_times_are_in_the_zone_of_the_reader() -> None:
    """A midnight of UTC is one o'clock in Berlin, in the table and in the window."""
    found = body(view(), zone=ZoneInfo("Europe/Berlin"))
    assert found.rows[2][1].text == "2026-01-03 01:00"
    assert "(Europe/Berlin)" in found.window


def test_what_is_not_known_is_called_so() -> None:
    """A null is no 0 and no empty cell; a column without any known value is named once below the table."""
    rows = [(None, None, None, float("nan"), None, None, None), ("alice", 0, 1, 1.0, 0.5, 2.0, None)]
    found = body(view(rows=rows))
    assert [cell.text for cell in found.rows[0]] == ["not known"] * 6
    assert found.unknown == "Timeouts"


def test_how_it_is_computed_is_shown() -> None:
    """The query with its lines and parameters, and each fact with its interval, are on the page."""
    found = read(view())
    assert "".join(found.words["pre"]) == "SELECT *\n  FROM jobs\n WHERE submit < $end"
    assert "$end" in found.said("dt")
    assert "wait_p50_s" in found.said("code")
    assert "9 min to 11 min" in found.said("td")
    links = [str(link["href"]) for link in found.all("a")]
    assert [link for link in links if link.startswith("/analytics/waits.")] == [
        "/analytics/waits.csv",
        "/analytics/waits.json",
        "/analytics/waits.svg",
    ]


def test_an_empty_view_says_so() -> None:
    """Without rows, charts and sentences the page still has a first line and says what is missing."""
    found = read(view(rows=[], rows_left_out=0, charts=[], narrative=[], facts=[], parameters={}, clusters=[]))
    assert found.said("h1") == "Nothing in this window."
    assert "No rows in this window." in found.said("p")
    assert not found.charts()


def test_hostile_names_stay_text_and_are_bounded() -> None:
    """Names in every field make no element, no control reaches the page, and 10,000 characters do not fill it."""
    nasty = HOSTILE + LONG
    document = view(
        title=nasty,
        question=nasty,
        clusters=[nasty] * 500,
        columns=[Column(name=nasty, title=nasty, unit=nasty), Column(name="n", title="n", unit=nasty)],
        rows=[(nasty, 1)] * 60,
        charts=[bars(title=nasty)] * 40,
        facts=[Fact(id=nasty, value=nasty, unit=nasty, text=nasty, means=nasty, query=nasty)] * 900,
        narrative=[nasty] * 900,
        notes=[nasty] * 900,
        sql=nasty * 50,
        parameters={nasty: nasty},
    )
    text = view_page(document, 1, Frame(links={"csv": f"/analytics/{HOSTILE}"}), page_link)
    found = Reading(text)
    assert not found.foreign_scripts()
    assert not {"\x00", "\x1b", "\u202e", "\ud800"} & set(text)
    assert len(text) < 1_500_000
    assert "700 more facts are in the JSON file." in found.said("p")


def test_columns_of_the_sample_are_those_of_the_document() -> None:
    """A row has a cell for each column that is not 0 throughout."""
    assert len(body(view()).rows[0]) == len(COLUMNS) - 1
