"""A page as its elements and its text; what HTML does not allow in a text fails."""

import re
from html.parser import HTMLParser

VOID = frozenset({"meta", "link", "input", "br", "img", "hr"})


def without_spans(html: str) -> str:
    """Return a page in which numbers and their units are in no elements of their own."""
    return re.sub(r'<span class="nowrap">(.*?)</span>', r"\1", html)


class Parsed(HTMLParser):
    """The elements and the text of a page that is well formed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID and not (self.get_starttag_text() or "").endswith("/>"):
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def shape(self) -> list[str]:
        """Return the elements in their order."""
        return [tag for tag, _ in self.tags]
