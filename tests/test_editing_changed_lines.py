"""A fault is found in the line that the reader has changed, and in no other."""

import random
import re

import pytest

from cypresskit.diagnosis.element_trace import trace_element
from cypresskit.editing import changed_lines
from cypresskit.editing.answering import AnswerHere
from cypresskit.editing.changed_lines import find_changed_fault, lead_to_fault, trace_wrong
from cypresskit.editing.dynamic_answers import judged_kernel
from cypresskit.editing.line_repairs import line_repairs, mistake, words_of
from cypresskit.editing.steps import STEPS, reference_kernel
from cypresskit.kernels.statement import find_statement
from cypresskit.teach.climb import explain_wrong_product

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
    "factors exchanged": ("01a", ["mad r11.xy__, r3.x, r2, r11"], 22, "to the other factor"),
    "factors and component": ("01a", ["mad r11.xy__, r3.y, r2, r11"], 22, "to the other factor"),
    "add": ("01a", ["add r11.xy__, r2.y, r3"], 22, "`add` adds its operands"),
    "sub": ("01a", ["mul r4, r2.y, r3", "sub r11, r11, r4"], 23, "another instruction than `sub`"),
    "target of a new fetch": (
        "02",
        [LACKS["02"][0].replace("r3,", "r2,"), *LACKS["02"][1:]],
        38,
        "writes r2; another register belongs here",
    ),
    "mul": ("01a", ["mul r11.xy__, r2.y, r3"], 22, "`mul` only multiplies"),
    "another sum read": ("01a", ["mad r11.xy__, r2.y, r3, r10"], 22, "in its own register"),
    "another sum": ("01a", ["mad r10.xy__, r2.y, r3, r10"], 22, "doesn't belong in this sum"),
    "mask": ("01a", ["mad r11.x___, r2.y, r3, r11"], 22, "more components belong here"),
    "columns": ("01a", ["mad r11.xy__, r2, r3.y, r11"], 22, "belongs to the other factor"),
    "B first": ("01a", ["mad r11.xy__, r3, r2, r11"], 22, "reads r2; one component belongs here"),
    "no component": ("01a", ["mad r11.xy__, r2, r3, r11"], 22, "one component belongs here"),
    "another register": ("01a", ["mad r11.xy__, r0.y, r3, r11"], 22, "another register belongs"),
    "counts half": ("00", TWO, 22, "An iteration adds 2 terms, but k grows by 1"),
    "wrong rows": ("01b", EXCHANGED, 23, "Lines 23 and 24 exchange r2.w and r2.z."),
    "added twice": ("01b", [*ROWS, ROWS[0]], 25, "Without line 25 the kernel is correct"),
    "texel": ("02", [LACKS["02"][0].replace("1,0", "0,1"), *LACKS["02"][1:]], 38, "its offset"),
    "texture": ("02", [LACKS["02"][0].replace("(0)", "(1)"), *LACKS["02"][1:]], 38, "texture 1;"),
    "swizzle": ("01b", BLOCK.replace("vWinCoord0.yx", "vWinCoord0.xy"), 8, "are exchanged"),
    "test": ("01b", BLOCK.replace("ge r1.x", "lt r1.x"), 16, "the wrong way round"),
    "store lost": ("01b", BLOCK.replace("mov g[r1.x], r12\n", ""), 52, "A line is missing before"),
    "address": ("01b", BLOCK.replace("r0.x, l0.w", "r0.x, l0.z"), 28, "another component"),
    "component of one": ("00", ONE.replace("r2.x, r3.x", "r2.y, r3.x"), 18, "another component"),
    "moved": ("03", ORDER.replace(COUNT, "").replace(FETCH, COUNT + FETCH), 32, "wrong place"),
    "target": ("03", ORDER.replace(") r3, r0.xz", ") r2, r0.xz"), 31, "another register"),
    "rewritten": (
        "01b",
        BLOCK.replace("add r0.xy, vWinCoord0.yx, l0.x", "mov r0.xy, vWinCoord0.yx"),
        8,
        "in line 8",
    ),
    "moved and changed": (
        "05",
        renumbered(NUMBERED[1].replace("l8.w", "l8.y"), NUMBERED[0]),
        17,
        "another component",
    ),
    "bound": ("01b", BLOCK.replace("cb0[0].z      ", "cb0[0].w      "), 16, "another component"),
    "alpha": ("own", OWN.replace("cb0[0].z\n", "cb0[0].x\n"), 19, "another component"),
    "constant": ("00", ONE.replace("1.0, -0.5", "1.0, 0.5"), 8, "change in line 8 the kernel"),
    "addend": ("02", written("02", LACKS["02"]).replace("l1.zw", "l0.zw"), 8, "another register"),
    "upper case": ("01b", ["MUL r11, r2.y, r3", *ROWS[1:]], 22, "only multiplies"),
    "break": ("01b", BLOCK.replace("break_logicalnz", "break_logicalz"), 17, "the wrong way"),
    "single": (
        "06",
        STEPS["06"].starter.replace("dmad r30", "mad r30", 1),
        31,
        "than `mad` belongs",
    ),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_the_readers_line_is_named(kind):
    """By the trace of an incorrect element, or by the repair that makes it correct."""
    step, text, number, said = PLANTED[kind]
    text = text if isinstance(text, str) else written(step, text)
    fault, notes = fault_of(step, text), notes_on(step, text)
    sentence = fault.text if fault else notes[0]
    assert re.search(rf"\b[Ll]ines? {number}\b", sentence), sentence
    assert said in f"{sentence} {notes}"


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


def test_a_wrong_mask_of_an_address_is_named():
    """Where nothing is stored, only a whole C shows that it is this line."""
    fault = fault_of("05", renumbered(NUMBERED[0], NUMBERED[1].replace("l8.w", "l8.y")))
    assert fault and fault.line == 18 and "another component" in fault.text


def test_no_number_is_offered_that_makes_a_product_vanish():
    """The product belongs to another sum: as 0, it would be right in this one."""
    lines = [line.replace("r19", "r17") for line in LACKS["02"]]
    notes, _ = replayed(STEPS["02"], written("02", lines))
    assert "doesn't belong in this sum" in notes[0], notes


def test_where_a_given_line_stores_another_sum_the_readers_line_in_it_is_named():
    text = written("02", LACKS["02"]).replace("mad r8, r2.y, r4, r8", "mad r7, r2.y, r4, r7")
    text = text.replace("mad r7, r2.x, r5, r7", "mad r8, r2.x, r5, r8")
    notes, line = replayed(STEPS["02"], text)
    assert re.fullmatch(rf"Line {line} adds up C.*, which line \d+ stores as C\[0, 4\]\.", notes[0])


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


def test_a_count_is_right_while_the_products_that_it_counts_are_missing():
    """Two values of k are fetched and counted, as line 1 says; of the second, half the rows of a
    texel are multiplied.
    """
    text = STEPS["12"].starter.replace("k 1", "k 2", 1)
    text = text.replace("add r0.z, r0.z, l9.x", "add r0.z, r0.z, l0.x")
    head, loop, rest = text.partition("    mad r10, r2.x")
    fetches = []
    for n in range(4):
        matrix, place = n // 2, ("r0.xz00", "r0.yz00")[n // 2]
        name = f"sample_resource({matrix})_sampler({matrix})_aoffimmi({n % 2},1,0)"
        fetches.append(f"    {name} r{26 + n}, {place}\n")
    mads = [f"    mad r{2 * n}, r26.{'xy'[n - 5]}, r28, r{2 * n}\n" for n in (5, 6)]
    text = head + "".join(fetches) + loop + rest
    text = text.replace("    add r0.z", "".join(mads) + "    add r0.z", 1)
    fault = fault_of("12", text)
    assert fault is None or "l0.x" not in fault.text, fault


def test_a_note_on_a_given_line_says_nothing_that_it_should_do():
    """A repair leaves no note on another line; other notes say what the sum has."""
    text = BLOCK.replace(ROWS[2], ROWS[2].replace("r3, r13", "r3, r12"))
    notes, line = replayed(STEPS["01b"], text)
    assert line == 24 and notes[0].startswith("Line 24 adds to r12, but writes r13"), notes
    assert not any(note.startswith("Line 23") for note in notes), notes
    notes, line = replayed(STEPS["01b"], BLOCK.replace("iadd r1.x, r1.x, cb0[0].w\n", "", 2))
    assert not any("stores the sum" in note for note in notes[1:]), notes


def test_lines_written_in_place_of_given_ones_are_no_missing_lines():
    """As where a step asks for another numbering: the given lines would undo the reader's."""
    given = STEPS["05"].starter
    place = [line for line in given.splitlines() if re.match("(ushr r1.z|iand r1.w)", line)]
    wrong = ["ushr r2.x, vTidInGrpFlat.x, l8.x", "iand r1.w, r2.x, l8.w", "mov r1.z, r1.w"]
    text = given.replace("\n".join(place), "\n".join(wrong))
    fault = fault_of("05", text)
    assert fault is None or "missing" not in fault.text


def test_lines_are_not_blamed_if_it_is_their_stores_that_are_exchanged():
    text = written("01a", ["mad r11.xy__, r2.y, r3, r11"])
    text = text.replace("o0.xy__, r10", "o0.xy__, r11").replace("o1.xy__, r11", "o1.xy__, r10")
    notes, line = replayed(STEPS["01a"], text)
    assert line in (25, 26) and f"Line {line} reads r1" in notes[0], notes
    assert "another register belongs here" in notes[0]


@pytest.mark.slow
def test_a_line_lost_from_a_block_that_was_moved_is_the_missing_one():
    """The lines that came with it aren't in a wrong place."""
    products = [line for line in ORDER.splitlines() if line.startswith("    mad r")][:16]
    for lost in range(0, 16, 5):
        turned = [line for line in products[8:] + products[:8] if line != products[lost]]
        fault = fault_of("03", ORDER.replace("\n".join(products), "\n".join(turned)))
        assert fault is None or products[lost].strip() in fault.text, fault


def test_of_lines_that_compute_a_wrong_place_none_is_blamed_alone():
    """No single repair helps: all of the reader's lines that lead to the access are named."""
    wrong = [NUMBERED[0].replace("r1.z", "r2.x"), "iand r1.z, r2.x, l8.y", NUMBERED[1]]
    notes, line = replayed(STEPS["05"], renumbered(*wrong[:2], "mov r1.w, r1.z"))
    said = r"Line \d+, race: its address comes from lines 17 to 19\. Work-items 0 and 1 store to .*"
    assert re.fullmatch(said, notes[0]) and not line, notes


COLUMN = [
    "iand r1.w, vTidInGrpFlat.x, l8.x",
    "ushr r2.x, vTidInGrpFlat.x, l8.x",
    "iand r2.y, r2.x, l8.z",
    "ior r1.w, r1.w, r2.y",
]


@pytest.mark.parametrize(
    ("row", "given"),
    [
        ([NUMBERED[0]], True),
        (["iand r1.z, r2.x, l8.x", "iand r2.y, r2.x, l8.z", "ior r1.z, r1.z, r2.y"], False),
        (["ushr r2.x, l8.y, vTidInGrpFlat.x", "iand r1.z, r2.x, l8.w"], False),
    ],
)
def test_where_work_items_store_to_one_place_two_are_named(row, given):
    """And all of the reader's lines that compute it."""
    lines = [*row, *COLUMN] if given else [*COLUMN, *row]
    text = renumbered(*lines)
    notes, _ = replayed(STEPS["05"], text)
    said = re.search(
        r"comes from lines (\d+) to (\d+)\. Work-items (\d+) and (\d+) store to one place\.$",
        notes[0],
    )
    assert said, notes
    first, last, one, other = map(int, said.groups())
    assert one != other
    own = [*COLUMN, *row][: 4 if given else None]
    numbers = {text.splitlines().index(line) + 1 for line in own}
    assert numbers <= {*range(first, last + 1)}, notes
    seen = judged_kernel(text, STEPS["05"].file, STEPS["05"].like, scales=STEPS["05"].scales)
    assert explain_wrong_product(seen, STEPS["05"].starter).hint == notes[0], "as the check says"


@pytest.mark.parametrize("count", range(2, 6))
def test_of_a_product_that_is_yet_to_be_written_no_line_is_gone_to(count):
    """The fetches that it needs are the reader's, and right."""
    notes, line = replayed(STEPS["02"], written("02", LACKS["02"][:count]))
    assert "no line multiplies them" in notes[0] and not line, (notes, line)


@pytest.mark.parametrize("line", LACKS["01b"])
def test_mul_in_place_of_mad_is_told_so_while_other_lines_are_missing(line):
    notes, number = replayed(STEPS["01b"], written("01b", [line.replace("mad", "mul")[:-5]]))
    whole = line == LACKS["01b"][0]  # row 1 is the first incorrect one
    assert (number == 22 and "only multiplies" in notes[0]) == whole, notes


def test_a_number_added_without_a_factor_is_no_product_of_the_line_that_reads_it():
    notes, _ = replayed(STEPS["01a"], written("01a", ["mad r11.xy__, r2.y, l0.z, r11"]))
    assert notes[0] == "Line 22 reads l0.z; another register belongs here."


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


def test_a_line_that_counts_or_scales_is_no_product():
    """Whatever else a kernel has wrong, `add r0.z, r0.z, l0.x` isn't told to be a multiply-add."""
    counted = 0
    for step in STEPS.values():
        lines = [words_of(line) for line in step.starter.splitlines()]
        for words in lines:
            op, *names = (word.partition(".")[0] for word in words)
            if op in ("add", "mul", "dadd", "dmul") and names[0] in names[1:]:
                repaired = [words_of(repair.text) for repair in line_repairs(1, words, lines)]
                assert all(len(repair) == len(words) for repair in repaired), words
                counted += 1
    assert counted > 20


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


@pytest.mark.parametrize("seed", range(8))
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


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("step", LACKS)
def test_right_lines_are_never_blamed(step):
    """A kernel that is only incomplete."""
    for some in {0, len(LACKS[step]) // 2}:
        fault = fault_of(step, written(step, LACKS[step][:some]))
        assert fault is None, (some, fault)


def test_the_workbench_shows_the_fault_first():
    notes, line = replayed(STEPS["01a"], written("01a", ["add r11.xy__, r2.y, r3"]))
    assert line == 22 and notes[0].startswith("Line 22: `add` adds its operands")


def test_a_repair_of_the_only_changed_line_makes_all_of_c_correct():
    """Its target is wrong. A mask, or another component of a source, repairs some elements."""
    fault = fault_of("05", renumbered("ushr r1.x, vTidInGrpFlat.x, l8.y", NUMBERED[1]))
    assert fault.text == "Line 17 writes r1.x; another component belongs here."


@pytest.mark.parametrize("right", ["mad r13, r2.y, r5, r13", "dmad r10.xy, r2.zw, r3.xy, r10.xy"])
def test_the_order_of_two_factors_is_no_mistake(right):
    """With any word of the line wrong, the other order has the same sentence."""
    wrongs = [words_of(right)]
    for place in range(1, 5):
        name, _, letters = wrongs[0][place].partition(".")
        for put in ("r7", "r5.x", "r3.zw", f"{name}.w", name, f"r9.{letters}"):
            wrongs.append([*wrongs[0][:place], put, *wrongs[0][place + 1 :]])
    for op, to, first, second, added in wrongs:
        one, other = (
            mistake(1, [op, to, *two, added], words_of(right))
            for two in ((first, second), (second, first))
        )
        assert one == other and (one is None or one.kind != "operands"), (first, second, one, other)


def test_a_modifier_is_no_other_register():
    """Nor another component."""
    for start in ("mov o0, ", "mad r18, r3.x, r4, ", "add r18, r2, "):
        for operand in ("r18", "r18.x"):
            plain, negated = (words_of(f"{start}{operand}{end}") for end in ("", "_neg(xyzw)"))
            assert mistake(1, negated, plain).values["needs"].kind == "no modifier"
            assert mistake(1, plain, negated).values["needs"].kind == "modifier"


def test_the_other_factor_has_the_component_and_operands_are_exchanged():
    right = words_of("mad r18, r3.x, r4, r18")
    for wrong in ("mad r18, r4.x, r3, r18", "mad r18, r3, r4.x, r18"):
        assert mistake(1, words_of(wrong), right).kind == "other factor"
    udiv = "udiv r1.x, {}, {}".format
    one, other = "vThreadGrpIdFlat.x", "cb0[4].y"
    assert mistake(1, words_of(udiv(other, one)), words_of(udiv(one, other))).kind == "operands"


def test_an_address_that_is_only_multiplied_is_no_sum():
    """Nor is it told what it lacks if its factors are others, too."""
    right, line = written("02", LACKS["02"]), "mad r1.x, vWinCoord0.y, l0.z, l0.w"
    wrong = right.replace(line, "mul r1.x, r0.x, l0.z")
    fault = fault_of("02", wrong, known=right)
    assert (
        wrong != right and fault and fault.line == wrong[: wrong.index("mul r1.x")].count("\n") + 1
    )
    assert "only multiplies" not in fault.text


def test_a_line_that_differs_in_spaces_only_is_no_mistake():
    """Another line is wrong."""
    text = written("01b", [ROWS[0].replace(", ", ","), ROWS[1].replace("r2.z", "r2.w"), ROWS[2]])
    fault = fault_of("01b", text, BLOCK)
    assert fault and fault.line == 23, fault


@pytest.mark.parametrize("lines", [1_000, 4_000, 8_000])
@pytest.mark.parametrize("store", ["mov g[r1.x+0], r10", "mov g[r1.x+1], r17"])
def test_what_happens_to_change_a_place_that_data_decide_is_no_repair(store, lines, monkeypatch):
    """However long is searched: other fetched numbers lead elsewhere."""
    text = reference_kernel(STEPS["02"].like).text
    number = text[: text.index(store)].count("\n") + 1
    monkeypatch.setattr(changed_lines, "MAX_STEPS", lines)
    note = fault_of("02", text.replace(store, store.replace("r1.x", "r2.x")))
    assert note and f"Line {number}" in note.text


@pytest.mark.parametrize("relation", ["le", "lt"])
def test_another_relation_of_a_break_is_named_by_its_line(relation):
    test, leave = "    ge r1.x, r0.z, cb0[0].z\n", "    break_logicalnz r1.x\n"
    wrong = OWN.replace(test, "").replace(leave, f"    breakc_relop({relation}) r0.z, cb0[0].z\n")
    number = wrong[: wrong.index("breakc")].count("\n") + 1
    note = fault_of("own", wrong, OWN)
    assert note and note.line == number and "the test is" in note.text
    assert "one iteration" not in note.text


@pytest.mark.parametrize("step", ["00", "01b", "02", "own", "06"])
def test_exchanged_operands_of_a_loops_test_are_told(step):
    """It isn't the relation that is wrong."""
    right = OWN if step == "own" else STEPS[step].starter
    test = next(line for line in right.splitlines() if re.match(r"\s*(ge|breakc)", line))
    op, *operands = words_of(test)
    turned = f"{op} {', '.join([*operands[:-2], *reversed(operands[-2:])])}"
    wrong = right.replace(test, turned)
    note = fault_of(step, wrong, right)
    number = wrong.splitlines().index(turned) + 1
    assert note and note.text == f"Line {number}: its operands are exchanged."


@pytest.mark.parametrize("stated", ["TN, 8 x 12, k 3", "TN, 24 x 8, k 3", "TN, 12 x 8, k 1"])
def test_a_statement_that_was_changed_is_named(stated):
    known = STEPS["contest"].starter
    _, before = find_statement(known)
    note = fault_of("contest", known.replace(before, stated), known)
    assert note and note.text == f"Line 1 states {stated}; with {before} it is correct."


@pytest.mark.parametrize("row", range(4))
def test_a_product_that_is_repeated_behind_the_loop_is_named_and_not_the_counter(row):
    line = f"    mad r{10 + row}, r2.{'xyzw'[row]}, r3, r{10 + row}\n"
    known = BLOCK
    text = known.replace("endloop\n", f"endloop\n{line}", 1)
    number = text[: text.index("endloop")].count("\n") + 2
    note = fault_of("01b", text, known)
    assert note and note.text == f"Without line {number} the kernel is correct."


@pytest.mark.parametrize("wrong", ["add r0.x, vWinCoord0.y, l0.x", "mul r0.x, vWinCoord0.y, l0.w"])
def test_a_line_in_place_of_two_is_named(wrong):
    """Beside it, neither of the two makes the kernel correct."""
    place = "add r0.xy, vWinCoord0.yx, l0.x\nmul r0.x, r0.x, l0.w\n"
    two = "add r1.x, vWinCoord0.y, l0.x\nmul r0.x, r1.x, l0.w\n"
    known = FREE.replace(place, f"add r0.y, vWinCoord0.x, l0.x\n{two}")
    text, step = known.replace(two, f"{wrong}\n"), STEPS["free"]
    seen = judged_kernel(text, step.file, step.like)
    trace = trace_wrong(seen)
    first = lead_to_fault(find_changed_fault(seen, known, trace), trace, known)[0]
    number = known[: known.index(two)].count("\n") + 1
    assert first.line == number and f"line {number}" in first.text


def test_a_line_that_stores_all_of_a_register_in_place_of_a_part_of_it_is_told_so():
    known = written("01a", LACKS["01a"]).replace(
        "mov o1.xy__, r11", "mov r12.zw, r11.xyxy\nmov o1.xy__, r12.zw"
    )
    note = fault_of("01a", known.replace("r12.zw\n", "r12\n"), known)
    assert note and note.text.endswith("reads r12; other components belong here.")


def test_two_changes_are_not_undone_where_an_element_tells_which_line_leads_to_it():
    """The places of rows and columns are exchanged, but in two fetches."""
    text = ONE.replace("vWinCoord0.yx", "vWinCoord0.xy").replace("r2, r0.yx00", "r2, r0.xy00")
    assert text.count("xy00") == 1 and "Without" not in fault_of("00", text).text


@pytest.mark.parametrize("letter", "yzw")
def test_a_component_of_a_double_is_told_to_be_a_half(letter):
    text = STEPS["06"].starter
    wrong = text.replace("r2.xy, r4.xy", f"r2.{letter}, r4.xy")
    note = fault_of("06", wrong, text)
    assert note and "a double takes two components" in note.text


def test_a_change_is_not_told_to_be_all_where_a_line_is_missing_elsewhere():
    """Undone alone, it would leave a sum without a first value."""
    text = ONE.replace("r2, r0.zx00", "r2, r0.xz00").replace("mov r10, l0.z", "", 1)
    fault = fault_of("00", text)
    assert fault is None or not fault.text.startswith("Without"), fault


@pytest.mark.parametrize(
    "row, sum", [(row, sum) for row in range(3) for sum in range(4) if sum != row + 1]
)
def test_a_line_that_adds_to_another_rows_sum_is_named_whatever_else_is_wrong_in_it(row, sum):
    wrong = ROWS[row].replace("r2.", "r2.x").replace("xyzw"[row + 1], "", 1)
    lines = [*ROWS[:row], re.sub(r"r1\d$", f"r{10 + sum}", wrong), *ROWS[row + 1 :]]
    text = written("01b", lines)
    number = text.split("\n").index(f"    {lines[row]}") + 1
    seen = judged_kernel(text, STEPS["01b"].file, STEPS["01b"].like)
    trace = trace_wrong(seen)
    note = lead_to_fault(None, trace, STEPS["01b"].starter)[0]
    said = f"Line {number} adds to r{10 + sum}, but writes r{11 + row}: a sum stays in its own"
    assert note.text == f"{said} register."


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
