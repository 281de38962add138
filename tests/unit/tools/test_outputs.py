"""The outputs in hand-written pages: which part of an answer is shown, and where it is from."""

import pytest
from tools.reference import outputs

PRINTED = "head\n\nfirst\n\nsecond\n\nlast\n"


def test_all_of_an_output_is_shown() -> None:
    """Without `parts`, an output is shown as it was printed."""
    assert outputs.chosen(PRINTED, None) == PRINTED.rstrip("\n")


@pytest.mark.parametrize(
    ("parts", "shown"),
    [
        ("1-2", "head\n\nfirst\n\n..."),
        ("1,4", "head\n\n...\n\nlast"),
        ("2-3", "...\n\nfirst\n\nsecond\n\n..."),
    ],
)
def test_what_is_left_out_is_marked(parts: str, shown: str) -> None:
    """Each gap between the paragraphs that are shown is one line of dots."""
    assert outputs.chosen(PRINTED, parts) == shown


def test_pages_have_outputs_of_kept_answers() -> None:
    """The pages of rules and notices show what a hub answered."""
    assert {"docs/how-to/rules.md", "docs/how-to/notices.md", "docs/how-to/plan.md"} <= set(outputs.pages())


BLOCK = "before\n<!-- output of: gpuwaste rules check ROOT/etc/rules.d; as {} -->\n```text\nold\n```\nafter\n"


def test_a_block_is_replaced_by_the_kept_answer() -> None:
    """The text below the comment becomes the answer; what is around it stays."""
    before, after = BLOCK.format("files").split("old")
    text = outputs.renewed(BLOCK.format("files"))
    assert text.startswith(before)
    assert text.endswith(after)
    assert "idle-gpus" in text
    assert "exit code" not in text


def test_an_answer_that_is_not_kept_is_an_error() -> None:
    """The error names the answer that the comment asks for."""
    with pytest.raises(KeyError, match="command/zoe rules check"):
        outputs.renewed(BLOCK.format("zoe"))


def test_a_block_is_replaced_by_what_a_scene_prints() -> None:
    """The command runs in its scene; with `wrapped`, a line that is too wide goes on in the next one."""
    name = "c" * 93
    command = f"gpuwaste model calibrate --gpu l4 -o {name} --no-submit"
    block = f"<!-- output of: {command}; in empty; wrapped -->\n```text\n```\n"
    assert outputs.renewed(block).splitlines()[2:-1] == [
        f"{name}: 0 of 480 programs done",
        "submit it with: sbatch",
        f"{' ' * 18}{name}/job.sh",
    ]


@pytest.mark.parametrize(("old", "kept"), [("caliber: 3 of 470 programs", True), ("caliber: 3 of 470 jobs", False)])
def test_trained_figures_of_another_processor_stay(old: str, kept: bool) -> None:
    """With `trained` an output that differs in digits only is as good as today's; other words are not."""
    old += " done\nsubmit it with: sbatch caliber/job.sh"
    command = "gpuwaste model calibrate --gpu l4 -o caliber --no-submit"
    block = f"<!-- output of: {command}; in empty; trained -->\n```text\n{old}\n```\n"
    assert (outputs.renewed(block) == block) is kept
