"""The words that a language model may add to a sentence, leave out or exchange: none of them changes what it claims."""

from typing import Final


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


NEUTRAL: Final = _set("""
a also an did do does had has have here indeed it its that the their them there these they this those which who
""")
"""Words that may be added or left out; forms of "be" are not: "jobs used" and "jobs were used" are two things."""

OPENERS: Final = _set("""
additionally addition as at during furthermore general in meanwhile moreover note now of on overall period
report result results same short shown summary that the these this time to up whole window sum
""")
"""Words of which a phrase before the first comma of a sentence may be made: "Overall,", "In this window,"."""

SAME: Final = {
    "began": "started",
    "biggest": "largest",
    "concluded": "ended",
    "consumed": "used",
    "finished": "ended",
    "fraction": "part",
    "greatest": "largest",
    "hit": "reached",
    "launched": "started",
    "portion": "part",
    "queued": "waited",
    "submitting": "submitted",
    "utilized": "used",
    "while": "and",
    "whereas": "and",
}
"""Words that may stand for another one."""

NUMBERS: Final = _set("""
both couple dozen dozens double doubled eight eighth eighty eleven fifteen fifth fifty first five forty four
fourth half halves hundred hundreds million millions nine ninety ninth one once pair percent percentage
quarter quarters second seven seventh seventy single six sixth sixty ten tenth tenths tens third thirds thirty
thousand thousands thrice three trillion triple tripled twelve twenty twice two zero billion billions
""")
"""Words that are a number or a part: refused as such where a sentence by rules has none."""

COMPARISONS: Final = _set("""
about above all almost always any approximately around below best better bigger decrease decreased decreasing
down every exceed exceeded exceeds fall fallen falls fell few fewer fewest greater growing grew high higher
highest increase increased increasing least less little longer longest lower lowest majority many maximum
minimum minority more most much nearly never no none not only over rise risen rises rose roughly several
shorter shortest significant significantly slower slowest small smaller smallest some than under up worse
worst
""")
"""Words of more and less: refused as such where the rules have none."""
