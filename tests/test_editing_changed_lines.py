"""A fault is found in the line that the reader has changed, and in no other."""

import random
import re

import pytest

from cypresskit.editing import changed_lines
from cypresskit.editing.answering import AnswerHere
from cypresskit.editing.changed_lines import find_changed_fault
from cypresskit.editing.dynamic_answers import judged_kernel
from cypresskit.editing.steps import STEPS, reference_kernel

GAP = "your line"  # in the comment below which a step's reader writes
#: The lines that each step lacks.
LACKS = {
    "01a": ["mad r11.xy__, r2.y, r3, r11"],
    "01b": [f"mad r{11 + row}, r2.{'yzw'[row]}, r3, r{11 + row}" for row in range(3)],
    "02": [
        "sample_resource(0)_sampler(0)_aoffimmi(1,0,0) r3, r0.xz00",
        "sample_resource(1)_sampler(1)_aoffimmi(1,0,0) r5, r0.yz00",
        *(
            f"mad r{6 + 2 * row + right}, r{2 + row // 4}.{'xyzw'[row % 4]}, r{4 + right},"
            f" r{6 + 2 * row + right}"
            for row in range(8)
            for right in range(2)
            if row > 3 or right
        ),
    ],
}


@pytest.fixture(autouse=True)
def enough_time(monkeypatch):
    """What is found doesn't depend on the computer."""
    monkeypatch.setattr(changed_lines, "SECONDS", 100.0)


def written(step: str, lines: list[str]) -> str:
    """The step's starter with these lines in its last gap."""
    before, gap, after = STEPS[step].starter.rpartition(GAP)
    rest, end, after = after.partition("\n")
    return before + gap + rest + end + "".join(f"    {line}\n" for line in lines) + after


def fault_of(step: str, text: str, known: str = ""):
    chosen = STEPS[step]
    seen = judged_kernel(text, chosen.file, chosen.like)
    return None if seen.right else find_changed_fault(seen, known or chosen.starter)


ROWS = LACKS["01b"]


@pytest.mark.parametrize(
    ("step", "lines", "number", "said"),
    [
        ("01a", ["mad r11.xy__, r3.x, r2, r11"], 22, "factors of A and B are exchanged"),
        ("01a", ["mad r11.xy__, r3.y, r2, r11"], 22, "factors of A and B are exchanged"),
        ("01a", ["add r11.xy__, r2.y, r3"], 22, "`add` adds its operands"),
        ("01a", ["mul r11.xy__, r2.y, r3"], 22, "`mul` only multiplies"),
        ("01a", ["mad r11.xy__, r2.y, r3, r10"], 22, "a sum stays in its own register"),
        ("01a", ["mad r10.xy__, r2.y, r3, r10"], 22, "belongs to another sum"),
        ("01a", ["mad r11.x___, r2.y, r3, r11"], 22, "mask"),
        ("01a", ["mad r11.xy__, r2, r3, r11"], 22, "one component belongs here"),
        ("01b", ["mad r11, r2, r3.x, r11", *ROWS[1:]], 22, "one component of r2 belongs here"),
        ("01b", [ROWS[0], "mad r12, r2.w, r3, r12", "mad r13, r2.z, r3, r13"], 23, "each added to"),
        ("01b", ["add r11, r2.y, r3", *ROWS[1:]], 22, "`add` adds its operands"),
        ("01b", [*ROWS, ROWS[0]], 25, "C is correct without this line"),
        ("01b", [*ROWS, "mad r10, r2.x, r3, r10"], 25, "C is correct without this line"),
    ],
)
def test_the_readers_line_is_named(step, lines, number, said):
    fault = fault_of(step, written(step, lines))
    assert fault.line == number and said in fault.message, fault


def mutants(line: str) -> list[str]:
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


@pytest.mark.parametrize("seed", range(12))
def test_of_new_lines_with_one_mistake_that_line_is_named(seed):
    """Whatever the step, the line and the mistake; the other new lines are right, or missing."""
    chance = random.Random(seed)
    step = chance.choice(list(LACKS))
    lines = list(LACKS[step])
    at = chance.randrange(len(lines))
    lines[at] = chance.choice(mutants(lines[at]))
    text = written(step, lines)
    fault = fault_of(step, text)
    number = text.splitlines().index(f"    {lines[at]}") + 1
    assert number in map(int, re.findall(r"\d+", str(fault))), (lines, fault)


@pytest.mark.parametrize("seed", range(6))
def test_of_a_correct_kernel_the_changed_line_is_named(seed):
    """Lines deleted, doubled, moved away or changed, anywhere in the loop."""
    chance = random.Random(seed)
    step, name = chance.choice([("01b", "block_4x4"), ("02", "block_8x8"), ("06", "dgemm_tn")])
    known = reference_kernel(name).text
    lines = known.splitlines()
    loop = range(lines.index("whileloop") + 1, lines.index("endloop"))
    at = chance.choice([n for n in loop if lines[n].strip().startswith(("mad", "dmad", "sample"))])
    changed = [*lines]
    act = chance.choice(["delete", "double", "change"])
    if act == "double":
        changed.insert(at, lines[at])
    elif act == "delete":
        del changed[at]
    else:
        changed[at] = lines[at].replace("r2.", "r3.").replace("r0.", "r1.")
    fault = fault_of(step, "\n".join(changed), known)
    assert fault is None or abs(fault.line - at - 1) <= 1, (act, lines[at], fault)


@pytest.mark.parametrize("step", LACKS)
def test_right_lines_are_never_blamed(step):
    """A kernel that is only incomplete."""
    for some in range(len(LACKS[step])):
        fault = fault_of(step, written(step, LACKS[step][:some]))
        assert fault is None, (some, fault)


def test_the_workbench_shows_the_fault_first():
    chosen, heard = STEPS["01a"], []
    text = written("01a", ["mad r11.xy__, r3.x, r2, r11"])
    job = {"edit": "e", "text": text, "name": chosen.file, "like": chosen.like, "n": chosen.n}
    job |= {"step": "01a", "known": chosen.starter, "parts": ["verdict", "replay"]}
    AnswerHere(heard.append).ask(job)
    (replay,) = [
        message for message in heard if message.get("part") == "replay" and "terms" in message
    ]
    assert replay["line"] == 22 and replay["notes"][0].startswith("Line 22: the factors")
