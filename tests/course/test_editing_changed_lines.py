"""A fault is found in the line that the reader has changed, and in no other."""

import random
import re

import pytest
from conftest import by_day, seeds

from cypresskit.diagnosis.element_trace import trace_element
from cypresskit.editing.answering import AnswerHere
from cypresskit.editing.changed_lines import find_changed_fault, trace_wrong
from cypresskit.editing.dynamic_answers import judged_kernel
from cypresskit.editing.steps import STEPS, reference_kernel

GAP = "your line"  # in the comment below which a step's reader writes
#: The lines that each step lacks.
LACKS = {name: [*STEPS[name].solution] for name in ("01a", "01b", "02")}


def written(step: str, lines: list[str]) -> str:
    """The step's starter with these lines in its last gap."""
    before, gap, after = STEPS[step].starter.rpartition(GAP)
    rest, end, after = after.partition("\n")
    return before + gap + rest + end + "".join(f"    {line}\n" for line in lines) + after


def fault_of(step: str, text: str, known: str = ""):
    chosen = STEPS[step]
    seen = judged_kernel(text, chosen.file, chosen.like)
    return find_changed_fault(seen, known or chosen.starter, trace_wrong(seen))


def notes_on(step: str, text: str) -> tuple[str, ...]:
    """What the trace of an incorrect element says of the reader's lines."""
    seen = judged_kernel(text, STEPS[step].file, STEPS[step].like)
    return trace_element(seen.kernel).notes if seen.wrong else ()


ROWS = LACKS["01b"]
EXCHANGED = [ROWS[0], "mad r12, r2.w, r3, r12", "mad r13, r2.z, r3, r13"]
BLOCK = written("01b", ROWS)
OWN, FREE = (reference_kernel(STEPS[step].like).text for step in ("own", "free"))
ONE, ORDER = STEPS["00"].starter, STEPS["03"].starter
COUNT, FETCH = "    add r0.z, r0.z, l0.y\n", "    sample_resource(1)_sampler(1) r4"
TWO = ONE.replace(
    "    add",
    "    sample_resource(0)_sampler(0)_aoffimmi(1,0,0) r4, r0.zx00\n"
    "    sample_resource(1)_sampler(1)_aoffimmi(0,1,0) r5, r0.yz00\n"
    "    mad r10.x, r4.x, r5.x, r10.x\n"
    "    add",
)
NUMBERED = ["ushr r1.z, vTidInGrpFlat.x, l8.y", "iand r1.w, vTidInGrpFlat.x, l8.w"]


def renumbered(*lines: str) -> str:
    """Lesson 05's kernel with other lines that number its work-items."""
    text = STEPS["05"].starter
    given = [line for line in text.splitlines() if line.startswith((*NUMBERED,))]
    return text.replace("\n".join(given), "\n".join(lines))


#: Mistakes of each kind: the step, the text or new lines, and what is said of which line.
PLANTED = {
    "factors exchanged": ("01a", ["mad r11.xy__, r3.x, r2, r11"], 22),
    "factors and component": ("01a", ["mad r11.xy__, r3.y, r2, r11"], 22),
    "add": ("01a", ["add r11.xy__, r2.y, r3"], 22),
    "sub": ("01a", ["mul r4, r2.y, r3", "sub r11, r11, r4"], 23),
    "target of a new fetch": ("02", [LACKS["02"][0].replace("r3,", "r2,"), *LACKS["02"][1:]], 38),
    "mul": ("01a", ["mul r11.xy__, r2.y, r3"], 22),
    "another sum read": ("01a", ["mad r11.xy__, r2.y, r3, r10"], 22),
    "another sum": ("01a", ["mad r10.xy__, r2.y, r3, r10"], 22),
    "mask": ("01a", ["mad r11.x___, r2.y, r3, r11"], 22),
    "columns": ("01a", ["mad r11.xy__, r2, r3.y, r11"], 22),
    "B first": ("01a", ["mad r11.xy__, r3, r2, r11"], 22),
    "no component": ("01a", ["mad r11.xy__, r2, r3, r11"], 22),
    "another register": ("01a", ["mad r11.xy__, r0.y, r3, r11"], 22),
    "counts half": ("00", TWO, 22),
    "wrong rows": ("01b", EXCHANGED, 23),
    "added twice": ("01b", [*ROWS, ROWS[0]], 25),
    "texel": ("02", [LACKS["02"][0].replace("1,0", "0,1"), *LACKS["02"][1:]], 38),
    "texture": ("02", [LACKS["02"][0].replace("(0)", "(1)"), *LACKS["02"][1:]], 38),
    "swizzle": ("01b", BLOCK.replace("vWinCoord0.yx", "vWinCoord0.xy"), 8),
    "test": ("01b", BLOCK.replace("ge r1.x", "lt r1.x"), 16),
    "store lost": ("01b", BLOCK.replace("mov g[r1.x], r12\n", ""), 52),
    "address": ("01b", BLOCK.replace("r0.x, l0.w", "r0.x, l0.z"), 28),
    "component of one": ("00", ONE.replace("r2.x, r3.x", "r2.y, r3.x"), 18),
    "moved": ("03", ORDER.replace(COUNT, "").replace(FETCH, COUNT + FETCH), 32),
    "target": ("03", ORDER.replace(") r3, r0.xz", ") r2, r0.xz"), 31),
    "rewritten": (
        "01b",
        BLOCK.replace("add r0.xy, vWinCoord0.yx, l0.x", "mov r0.xy, vWinCoord0.yx"),
        8,
    ),
    "moved and changed": ("05", renumbered(NUMBERED[1].replace("l8.w", "l8.y"), NUMBERED[0]), 17),
    "bound": ("01b", BLOCK.replace("cb0[0].z      ", "cb0[0].w      "), 16),
    "alpha": ("own", OWN.replace("cb0[0].z\n", "cb0[0].x\n"), 19),
    "constant": ("00", ONE.replace("1.0, -0.5", "1.0, 0.5"), 8),
    "addend": ("02", written("02", LACKS["02"]).replace("l1.zw", "l0.zw"), 8),
    "upper case": ("01b", ["MUL r11, r2.y, r3", *ROWS[1:]], 22),
    "break": ("01b", BLOCK.replace("break_logicalnz", "break_logicalz"), 17),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_the_readers_line_is_named(kind):
    """By the trace of an incorrect element, or by the repair that makes it correct."""
    step, text, number = PLANTED[kind]
    text = text if isinstance(text, str) else written(step, text)
    fault, notes = fault_of(step, text), notes_on(step, text)
    sentence = fault.text if fault else notes[0]
    assert re.search(rf"\b[Ll]ines? ([\d, ]+ and )?{number}\b", sentence), sentence


#: Kernels that add products of zeros, which lie beyond the matrices.
ADDS_ZEROS = {
    "once more": (
        "01b",
        BLOCK.replace("ge r1.x, r0.z, cb0[0].z", "lt r1.x, cb0[0].z, r0.z"),
    ),
    "begins earlier": ("01b", BLOCK.replace("mov r0.z, l0.y", "mov r0.z, l0.x")),
    "another count": ("free", FREE.replace("ge r1.x, r0.w", "ge r1.x, r0.z")),
    "another relation": (
        "own",
        OWN.replace("    ge r1.x, r0.z, cb0[0].z\n", "").replace(
            "break_logicalnz r1.x", "breakc_relop(gt) r0.z, cb0[0].z"
        ),
    ),
}


@pytest.mark.parametrize("kind", ADDS_ZEROS)
def test_where_only_fetches_are_outside_c_is_correct_and_the_lines_are_remarked(kind):
    step, text = ADDS_ZEROS[kind]
    seen = judged_kernel(text, STEPS[step].file, STEPS[step].like, n=512, scales=STEPS[step].scales)
    assert seen and seen.at_size and not seen.findings
    lines = {line for found in seen.remarks for line in (found.line, *found.also)}
    (said,) = (text for text in seen.asides if "outside" in text)
    assert set(map(int, re.findall(r"\d+", said.partition(" read")[0]))) >= {min(lines), max(lines)}


def test_no_line_is_named_that_isnt_part_of_the_element_that_is_shown():
    """Each row's product is in the register of the row above: that of row 1 is wrong, too."""
    rows = [row.replace(f"r1{n}", f"r1{n - 1}") for n, row in enumerate(ROWS, 1)]
    notes, _ = replayed(STEPS["01b"], written("01b", rows))
    assert notes[0].startswith("Line 22 adds A[0, 1] · B[0, 0], which doesn't belong"), notes


@pytest.mark.parametrize("count", [".z", ".w"])
def test_a_repair_that_leaves_a_finding_names_no_line(count):
    """Where k is counted before the fetches, a start at half a k makes C right, but a fetch is
    outside.
    """
    line = f"    add r0{count}, r0{count}, l0{count}\n"
    early = FREE.replace(line, "").replace("    sample", line + "    sample", 1)
    fault = fault_of("free", early)
    assert fault is None or "add" in early.splitlines()[fault.line - 1], fault


def test_lines_written_in_place_of_given_ones_are_no_missing_lines():
    """As where a step asks for another numbering: the given lines would undo the reader's."""
    given = STEPS["05"].starter
    place = [line for line in given.splitlines() if re.match("(ushr r1.z|iand r1.w)", line)]
    wrong = ["ushr r2.x, vTidInGrpFlat.x, l8.x", "iand r1.w, r2.x, l8.w", "mov r1.z, r1.w"]
    text = given.replace("\n".join(place), "\n".join(wrong))
    fault = fault_of("05", text)
    assert fault is None or "missing" not in fault.text


COLUMN = [
    "iand r1.w, vTidInGrpFlat.x, l8.x",
    "ushr r2.x, vTidInGrpFlat.x, l8.x",
    "iand r2.y, r2.x, l8.z",
    "ior r1.w, r1.w, r2.y",
]


@pytest.mark.parametrize("count", range(2, 6))
def test_of_a_product_that_is_yet_to_be_written_no_line_is_gone_to(count):
    """The fetches that it needs are the reader's, and right."""
    notes, line = replayed(STEPS["02"], written("02", LACKS["02"][:count]))
    assert "no line multiplies them" in notes[0] and not line, (notes, line)


@pytest.mark.parametrize(
    "added, step", [("l0.z", "= 0 to r0.z"), ("l0.y", "= -0.5 to r0.z"), ("l0.x_neg(xyzw)", "")]
)
def test_of_an_endless_loop_the_lines_that_decide_it_are_named(added, step):
    text = ONE.replace("add r0.z, r0.z, l0.x", f"add r0.z, r0.z, {added}")
    seen = judged_kernel(text, STEPS["00"].file, STEPS["00"].like)
    (advice,) = (finding.advice for finding in seen.findings if finding.kind == "endless loop")
    does = f"adds {added} {step}" if step else "changes it"
    assert f"Line 14 tests r0.z; line 19 {does}." in advice


def test_a_register_that_a_later_line_sets_anew_needs_no_first_value():
    """A sum does: its own line reads it."""
    fetch = LACKS["02"][1]
    late = written("02", [line for line in LACKS["02"] if line != fetch] + [fetch])
    unset = written("02", LACKS["02"]).replace("mov r9, l0.x\n", "")
    for text, said in (late, "come first, or is another"), (unset, "first value before the loop"):
        seen = judged_kernel(text, STEPS["02"].file, STEPS["02"].like)
        assert said in seen.findings[0].advice


def replayed(step, text: str) -> tuple[list[str], int]:
    """What the workbench says of the first incorrect element, and the line to go to."""
    heard: list[dict] = []
    job = {"edit": "e", "text": text, "name": step.file, "like": step.like, "n": step.n}
    job |= {"step": step.name, "known": step.starter, "parts": ["verdict", "replay"]}
    AnswerHere(heard.append).ask(job)
    (replay,) = [message for message in heard if "terms" in message]
    return replay["notes"], replay.get("line", 0)


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


@pytest.mark.parametrize("seed", seeds(8))
def test_of_new_lines_with_one_mistake_that_line_is_named(seed):
    """Whatever the step, the line and the mistake; the other new lines are right, or missing."""
    chance = random.Random(seed)
    step = chance.choice(list(LACKS))
    lines = list(LACKS[step])
    at = chance.randrange(len(lines))
    lines[at] = chance.choice(mutants(lines[at]))
    text = written(step, lines)
    number = text.splitlines().index(f"    {lines[at]}") + 1
    named = str(fault_of(step, text)) + str(notes_on(step, text))
    assert number in map(int, re.findall(r"\d+", named)), (lines, named)


@pytest.mark.parametrize("seed", seeds(6))
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


@pytest.mark.parametrize("step", by_day(LACKS, 2))
def test_right_lines_are_never_blamed(step):
    """A kernel that is only incomplete."""
    for some in {0, len(LACKS[step]) // 2}:
        fault = fault_of(step, written(step, LACKS[step][:some]))
        assert fault is None, (some, fault)


def test_the_workbench_shows_the_fault_first():
    notes, line = replayed(
        STEPS["01a"], written("01a", ["mad r11.xy__, r2.y, r3, r11", "add r10, r10, r2"])
    )
    assert line == 23 and notes[0] == "Without line 23 the kernel is correct."


def test_a_change_is_not_told_to_be_all_where_a_line_is_missing_elsewhere():
    """Undone alone, it would leave a sum without a first value."""
    text = ONE.replace("r2, r0.zx00", "r2, r0.xz00").replace("mov r10, l0.z", "", 1)
    fault = fault_of("00", text)
    assert fault is None or not fault.text.startswith("Without"), fault


def test_fetches_before_the_loop_are_named_where_their_texels_are_multiplied_again():
    fetches = [line for line in OWN.splitlines(True) if "sample" in line]
    text = OWN.replace("".join(fetches), "").replace(
        "whileloop\n", f"{''.join(fetches)}whileloop\n"
    )
    lines = text.splitlines()
    at = [n for n, line in enumerate(lines, 1) if "sample" in line or "mad r10" in line]
    assert re.match(
        f"Lines {at[0]} and {at[1]} read both factors once, but line {at[2]} multiplies them ",
        notes_on("own", text)[0],
    )


def test_factors_that_two_lines_read_are_not_told_to_be_read_once():
    """The first texels are fetched before the loop, and again in it, for the next iteration."""
    fetches = "".join(line for line in OWN.splitlines(True) if "sample" in line)
    add = "    add r0.z, r0.z, l0.z\n"
    text = OWN.replace(fetches, "").replace("whileloop\n", f"{fetches}whileloop\n")
    text = text.replace(add, f"{fetches}{add}")
    notes = notes_on("own", text)
    assert notes and not any("read once" in note for note in notes), notes
    sum_anew = "    mad r20, r2.x, r3, r20\n    add r10, r10, r20\n"
    text = OWN.replace("    mad r10, r2.x, r3, r10\n", sum_anew).replace(
        "mov r10", "mov r20, l0.y\nmov r10", 1
    )
    assert not any("read once" in note for note in notes_on("own", text))


def test_no_line_of_the_readers_is_blamed_for_a_fetch_that_is_missing():
    for fetch in range(2):
        lines = [line for n, line in enumerate(LACKS["02"]) if n != fetch]
        notes, _ = replayed(STEPS["02"], written("02", lines))
        assert not any("your line" in note for note in notes), notes
