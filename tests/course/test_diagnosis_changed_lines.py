"""A fault is found in the line that the reader has changed, and in no other."""

import random
import tomllib

import pytest
from case_files import compare_with_case, edit_text
from repository import ROOT
from sampling import seeded

from cypresskit.diagnosis.changed_lines import find_changed_fault, find_notes
from cypresskit.editing.judgment import verify_text
from cypresskit.editing.steps import STEPS, reference_kernel
from cypresskit.teach.climb import explain_wrong_product

GAP = "your line"  # in the comment below which a step's reader writes
#: The lines that each step lacks.
LACKS = {name: [*STEPS[name].solution] for name in ("01a", "01b", "02")}
PLANTED = ROOT / "tests/cases/planted_faults.toml"
CASES = tomllib.loads(PLANTED.read_text())


def written(step, lines):
    """The step's starter with these lines in its last gap."""
    before, gap, after = STEPS[step].starter.rpartition(GAP)
    rest, end, after = after.partition("\n")
    return before + gap + rest + end + "".join(f"    {line}\n" for line in lines) + after


def judged(step, text):
    chosen = STEPS[step]
    return verify_text(text, chosen.file, chosen.like, is_scaled=chosen.is_scaled)


def first_note(seen, known):
    return find_notes(seen, known, find_changed_fault(seen, known))[0]


def verified(name):
    """A planted fault, and the text that its reader had."""
    case = {"of": "starter", "had": "starter"} | CASES[name]
    step = STEPS[case["step"]]
    texts = {"starter": step.starter, "reference": reference_kernel(step.like).text}
    if step.name in LACKS:
        texts["solved"] = written(step.name, LACKS[step.name])
    return judged(step.name, edit_text(texts[case["of"]], case["edits"])), texts[case["had"]]


@pytest.mark.parametrize("name", CASES)
def test_the_first_note_on_a_planted_fault_is_the_expected_one(name, request):
    """Of the trace of an incorrect element, or of the repair that makes it correct."""
    compare_with_case(request, PLANTED, name, first_note(*verified(name)).text)


def mutants(line):
    """Mistakes in a line that multiplies, or fetches."""
    op, operands = line.split(" ", 1)
    parts = operands.split(", ")
    if op.startswith("sample"):
        moved = op.replace("(1,0,0)", "(0,1,0)")
        return [f"{moved} {operands}", f"{op.replace('_aoffimmi(1,0,0)', '')} {operands}"]
    to, first, second, total = parts
    name, letter = first.split(".")
    other = "xyzw"["xyzw".index(letter) - 1]
    return [
        f"{op} {to}, {name}.{other}, {second}, {total}",
        f"{op} {to}, {second}.{letter}, {name}, {total}",
        f"add {to}, {first}, {second}",
        f"{op} {to}, {first}, {second}, r0",
    ]


@seeded(8)
def test_of_new_lines_with_one_mistake_that_line_is_named(seed):
    """Whatever the step, the line and the mistake; the other new lines are right, or missing."""
    chance = random.Random(seed)
    step = chance.choice(list(LACKS))
    lines = list(LACKS[step])
    at = chance.randrange(len(lines))
    lines[at] = chance.choice(mutants(lines[at]))
    text = written(step, lines)
    number = text.splitlines().index(f"    {lines[at]}") + 1
    found = first_note(judged(step, text), STEPS[step].starter)
    assert found.line == number, (lines, found.text)


@pytest.mark.parametrize("step", ["01b", "02"])
def test_right_lines_are_never_blamed(step):
    """A kernel that is only incomplete."""
    seen = judged(step, written(step, LACKS[step][: len(LACKS[step]) // 2]))
    assert find_changed_fault(seen, STEPS[step].starter) is None


def test_a_check_blames_the_line_that_was_added_and_not_the_launch():
    known = reference_kernel("block_4x4").text
    before, store, after = known.partition("mov g[r1.x+0], r4\n")
    text = f"{before}{store}    mov g[r1.x+1], r4\n{after}"
    verdict = explain_wrong_product(verify_text(text, "added.il", "block_4x4"), known)
    line = text.splitlines().index("    mov g[r1.x+1], r4") + 1
    assert f"Without line {line} " in verdict.hint and "line 1" not in verdict.hint
