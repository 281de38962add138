"""The pages of kept simulations: the difference first, and no text of a file becomes an element."""

from msgspec.structs import replace
from tests.unit.show.pages.drawings import HOSTILE, LONG
from tests.unit.show.pages.parsed import Parsed
from tests.unit.show.pages.view_documents import view

from gpuwaste.show.environment import Frame
from gpuwaste.sim.kept_simulations import KeptEntry, KeptSimulation
from gpuwaste.sim.simulations_resource import simulation_page, simulations_page

FRAME = Frame(user="oper", path="/simulations", operator=True)
KEPT = KeptSimulation(id="0123456789ab", at=1_769_904_000, title="Simulation", view=view())


def test_the_first_sentence_is_the_headline() -> None:
    """The difference is the headline, plots and the table follow, and pages of the table lead to one another."""
    text = simulation_page(KEPT, 1, FRAME)
    assert "Half of the jobs waited" in text[text.index("<h1>") : text.index("</h1>")]
    assert text.index("<h1>") < text.index("<figure") < text.index('id="table"')
    assert 'href="/simulations/0123456789ab?page=2#table"' in text


def test_texts_of_a_file_stay_texts() -> None:
    """Hostile names in title, sentences, cells and facts give the elements that harmless ones give."""

    def shown(text: str) -> tuple[list[str], list[str]]:
        document = view(
            title=text, narrative=[text, text], notes=[text], sql=text, rows=[[text, 0, 1, 1.0, 0.5, 1.0, 2]]
        )
        one = simulation_page(replace(KEPT, title=text, view=document), 1, FRAME)
        some = simulations_page([KeptEntry(id="0123456789ab", at=0, title=text)], FRAME)
        return [[tag for tag, _ in Parsed(page).tags] for page in (one, some)]  # type: ignore[return-value]

    calm = shown("harmless")
    assert shown(HOSTILE) == calm
    assert "\u202e" not in simulations_page([KeptEntry(id="0123456789ab", at=0, title="a\u202eb" + LONG)], FRAME)


def test_an_empty_list_says_how_to_keep_one() -> None:
    """Without a kept simulation the page names the command."""
    assert "simulate run --save" in simulations_page([], FRAME)
    assert "1 saved simulation." in simulations_page([KeptEntry(id="0123456789ab", at=0, title="x")], FRAME)
