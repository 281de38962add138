"""card.md of a bundle of waits."""

import time

from tabulate import tabulate

from gpuwaste.plan.wait_card import WaitCard


def card_text(card: WaitCard) -> str:
    """Return the card as Markdown."""
    first, last = (time.strftime("%Y-%m-%d", time.gmtime(instant)) for instant in card.window)
    lines = [
        f"# Waits: {card.name}",
        "",
        f"Trained on {card.rows} jobs of {card.source}, submitted from {first} to {last}.",
        f"Judged on {card.judged} jobs, each by trees that were trained on earlier jobs only. The shipped trees are",
        "trained on all jobs; that the figures carry over to them is an assumption.",
        "",
        figures_table(card, "github"),
        "",
        "*inside*: share of the waits from p10 to p90; 80 % is the aim. *loss*: mean pinball loss of p10, p50 and p90",
        "in seconds. *beside best*: the loss compared with the best of the baselines: single waits, rolling",
        "quantiles, requests. The model is worth its use where its last row has the smallest loss.",
        "",
        "Not known to the model: priorities, limits of users and accounts, dependencies, reservations, free nodes.",
        "",
    ]
    return "\n".join(lines)


def figures_table(card: WaitCard, style: str = "plain") -> str:
    """Return a row for each way to predict."""
    rows = [
        (
            one.method,
            f"{one.coverage:.1%}",
            f"{one.below:.1%}",
            f"{one.above:.1%}",
            f"{one.pinball_s:.1f}",
            f"{one.beside_best:+.1%}",
        )
        for one in card.figures
    ]
    heads = ("METHOD", "INSIDE", "BELOW", "ABOVE", "LOSS (s)", "BESIDE BEST")
    return tabulate(rows, headers=heads, tablefmt=style, disable_numparse=True, colalign=("left", *["right"] * 5))
