"""The IL front end: everything that production kernels use is read, everything else is refused with
a reason.
"""

import random
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import SIX, seeds
from hypothesis import given
from hypothesis import strategies as st

import cypresskit as ck
from cypresskit.il import OPCODES, Fault, reference
from cypresskit.il.bits import ALL
from cypresskit.il.other_languages import suggest_statement
from cypresskit.il.registers import INPUT_NAMES
from tools import il_page

HERE = Path(__file__).parents[1]


def pixel(*lines: str) -> str:
    return "\n".join(["il_ps_2_0", *lines, "end"])


def compute(*lines: str) -> str:
    return "\n".join(["il_cs_2_0", *lines, "end"])


def only(line: str):
    """The one instruction that ``line`` assembles to."""
    return ck.assemble(pixel(line)).body[0]


def test_everything_that_production_kernels_use_is_read():
    text = (HERE / "everything.il").read_text(encoding="utf-8")
    program = ck.assemble(text, "all.il")
    assert str(program) == text and ck.assemble(text.replace(",", " ,  ")) == program


@pytest.mark.parametrize("seed", seeds(6))
def test_two_instructions_in_a_line_are_refused_at_the_second(seed):
    chance = random.Random(seed)
    lines = ck.kernels[chance.choice(list(ck.kernels))].text.splitlines()
    codes = [line.split(";")[0].strip() for line in lines]
    begin = next(n for n, code in enumerate(codes) if code) + 1
    places = [n for n in range(begin, len(codes) - 1) if codes[n] and codes[n + 1]]
    at = chance.choice(places)
    both = f"{codes[at]} {codes[at + 1]}"
    lines[at : at + 2] = [both, ""]
    with pytest.raises(ck.ILError) as refused:
        ck.assemble("\n".join(lines))
    fault = refused.value.faults[0]
    assert (fault.line, fault.column) == (at + 1, len(codes[at]) + 2)
    assert "a line holds one instruction" in fault.message or "may follow" in fault.message


@pytest.mark.parametrize(
    "comment",
    ["; add it up", "; end", "; endloop", "; mul r0", "; mul r0, r1, r2 comes next"]
    + ["// mul r0, r0, r1", "; // mul r0, r0, r1", "; (mul r0, r0, r1)"],
)
def test_a_comment_is_refused_only_where_it_is_an_instruction(comment):
    assert only(f"mov r0, r1 {comment}").opcode == "mov"
    ck.assemble(pixel("; mov r0, r1", "mov r0, r1"))  # a whole line is left out on purpose


@pytest.mark.parametrize("text", "x=xxxx zw=zwzw xyz=xyzz xy00=xy00 1=1111 bgra=zyxw".split())
def test_short_swizzles_are_filled_by_repeating_them(text):
    short, swizzle = text.split("=")
    assert only(f"mov r1, r0.{short}").sources[0].swizzle == swizzle


@pytest.mark.parametrize("text", "x___=x___ __zw=__zw y_w=_y_w yz=_yz_ w=___w".split())
def test_masks_are_read_from_the_left(text):
    short, mask = text.split("=")
    assert only(f"mov r1.{short}, r0").dest.mask == mask


def test_the_spelling_of_a_literal_decides_its_type():
    program = ck.assemble(pixel("dcl_literal l0, 1, 1.0, -1, 0x7fc00000", "mov r0, l0"))
    assert program.literals[0] == (1, 0x3F800000, 0xFFFFFFFF, 0x7FC00000)


def test_macro_expansion_renames_registers_and_literals():
    macro = (
        "mdef(3)_out(1)_in(1)",
        "dcl_literal l0, 2.0, 2.0, 2.0, 2.0",
        "mul r0, in0, l0",
        "mov out0, r0",
        "mend",
    )
    calls = "mov r0, l0", "mcall(3) (r1.xy), (r0.zw)", "mcall(3) (r2), (r1)"
    program = ck.assemble(pixel("dcl_literal l0, 1.0, 1.0, 1.0, 1.0", *macro, *calls))
    moved = [f"{i.opcode} {', '.join(map(str, (i.dest, *i.sources)))}" for i in program.body[1:7]]
    assert moved[:4] == ["mov r3, r0.zwzw", "mul r4, r3, l1", "mov r5, r4", "mov r1.xy__, r5"]
    assert moved[5] == "mul r7, r6, l2", "a second call has registers and literals of its own"
    assert program.literals[2] == (0x40000000,) * 4


def fault(text: str) -> ck.ILError:
    with pytest.raises(ck.ILError) as caught:
        ck.assemble(text, "mine.il")
    return caught.value


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        ("0", "write `l0.y`, which holds 0"),
        ("0x0", "write `l0.y`, which holds 0x0"),
        ("-2.5", "write `l3.w`, which holds -2.5"),
        ("1", "declare `dcl_literal l1, 1, 0, 0, 0`, and write `l1.x`"),
        ("99999999999", "declare `dcl_literal l1, 99999999999, 0, 0, 0`"),
    ],
)
def test_a_number_is_named_where_it_is_or_in_a_free_literal(number, advice):
    literals = "dcl_literal l0, 4, 0, 1.0, 0\ndcl_literal l3, 7, 7, 7, -2.5\n"
    with pytest.raises(ck.ILError) as caught:
        ck.assemble(f"il_ps_2_0\n{literals}mov o0, {number}\nend\n")
    assert advice in str(caught.value)


FAULTY = tomllib.loads((HERE / "cases/faulty_texts.toml").read_text(encoding="utf-8"))


def in_order(parts: list[str], text: str) -> bool:
    """Whether all ``parts`` stand in a text, one behind the other."""
    return bool(re.search(".*".join(map(re.escape, parts)), text, re.DOTALL))


@pytest.mark.parametrize("line", FAULTY["lines"])
def test_a_faulty_line_is_reported_with_place_and_advice(line):
    error = fault(pixel("mov r9, r9", line))
    assert f"mine.il:3:{error.column}: " in str(error)
    assert in_order(FAULTY["lines"][line], str(error))
    assert (error.faults[0].line, error.name) == (3, "mine.il")
    assert str(error).splitlines()[2].index("^") == 4 + error.column - 1, (
        "the caret stands below the column"
    )


@pytest.mark.parametrize("text", FAULTY["slips"])
def test_reports_a_slip_of_another_language_once_with_its_cure(text):
    error = fault(compute("dcl_lds_id(0) 64", *text.split("\n")))
    assert len(error.faults) == 1, str(error)
    assert in_order(FAULTY["slips"][text], error.faults[0].message), str(error)
    assert named_and_cured(error.faults[0]), str(error)


#: What the reports of faults offer: a cure, or the form that was expected.
CURES = re.compile(
    r"Did you mean|\b[Uu]se |\bexpected\b|\bas in\b|\bneeds\b|\badd `|\bwrite `|\bdeclare\b|no IL: "
    r"|There are `|one of|must|takes|[Ee]xpected|has one to four|An instruction is|without an? "
    r"|without `"
    r"|never closed by|a constant element|not in cypresskit's subset|exists? in|outside a loop"
    r"|are o0 to o7|end at|is a double|is an integer|can only stand|own line"
    r"|there is no (macro|function)"
    r"|give it a line|at most|so it|has no|Leave it out"
)


def named_and_cured(found: Fault) -> bool:
    """Whether a report names a word of its line, and gives a cure or the form."""
    quoted = re.findall(r"`([^`]+)`", found.message)
    text = found.text.lower()
    named = any(word.lower() in text for word in quoted) or "end of the line" in found.message
    named = named or found.message.split()[0].lower() in text
    return named and bool(CURES.search(found.message))


BLOCK = re.compile(r"(whileloop|endloop|if\w*|else|endif)\b")


def slip(rng: random.Random, line: str) -> str:
    """A line of IL with a slip in it, as fingers or other languages make them. A line that begins
    or ends a block is only misspelt, so that one can see what it was.
    """
    words = re.split(r"(,\s*|\s+)", line)
    at = rng.randrange(0, len(words), 2)
    word = words[at]
    letter = rng.randrange(len(word)) if word else 0
    number = rng.choice(["1.0", "4", "0xff", "-2", "1e-3f", ".5"])
    slips = [
        word[:letter] + word[letter + 1 :],
        word[:letter] + word[letter : letter + 2][::-1] + word[letter + 2 :],
        word[:letter] + rng.choice("abcxyz_" + "." * (at > 0)) + word[letter:],
        number,
        f"-{word}",
        f"|{word}|",
        f"({word})",
        f"{word} {rng.choice('+-*/%')} {word}",
        f"{word}[{rng.randrange(4)}]",
        rng.choice(["threadIdx.x", "blockDim.y", "get_local_id(0)", "i", "x[0]", "acc", "NULL"]),
        "",
    ]
    if BLOCK.match(line):
        return rng.choice(slips[:3]) + "".join(words[1:]) if at == 0 else line
    words[at] = rng.choice(slips)
    forms = [
        "".join(words),
        line.replace(",", rng.choice([";", " ", ",,"]), 1),
        f"{line} {rng.choice(['{', '}', ')', 'r1', ', r9', '?', '#'])}",
        f"{rng.choice(['r0.x', 'r3', 'x', 'float x'])} {rng.choice(['=', '+=', '*='])} r1 * r2",
        rng.choice(["for (i = 0; i < 4; i++)", "while (1)", "if (r0.x > 1)", "__syncthreads();"]),
    ]
    return rng.choices(forms, [10, 2, 2, 1, 1])[0]


def test_every_report_of_a_random_slip_names_it_and_gives_a_cure():
    rng = random.Random(7)
    lines = [
        (kernel.name, n)
        for kernel in ck.kernels.values()
        for n, line in enumerate(kernel.text.splitlines())
        if n and line.split(";")[0].strip() and not line.startswith("end")
    ]
    reports = 0
    for name, n in rng.choices(lines, k=300):
        text = ck.kernels[name].text.splitlines()
        code = text[n].split(";")[0].strip()
        text[n] = slip(rng, code)
        try:
            ck.assemble("\n".join(text), "mine.il")
        except ck.ILError as error:
            here = [found for found in error.faults if found.line == n + 1]
            declares = code.startswith(("dcl", "mdef", "mend"))
            assert declares or len(error.faults) == len(here) == 1, f"{text[n]!r}: {error}"
            assert all(map(named_and_cured, here)), f"{text[n]!r}: {error}"
            reports += 1
    assert reports > 150


def test_the_lds_arrays_of_a_workgroup_share_its_32_kb():
    ck.assemble(compute("dcl_lds_id(0) 16384", "dcl_lds_id(1) 16384"))
    error = fault(compute("dcl_lds_id(0) 16384", "dcl_lds_id(1) 16400", "mov r0, r1"))
    assert error.line == 3 and "have 32784 bytes together" in str(error)


@pytest.mark.parametrize("name", SIX[3:])
def test_faulty_lines_are_reported_each_and_alone(name):
    lines = ck.kernels[name].text.splitlines()
    written = [n for n, line in enumerate(lines) if line.partition(";")[0].strip()]
    rng = random.Random(name)
    for _ in range(20):
        faulty = sorted(rng.sample(written, rng.randint(1, 8)))
        damaged = list(lines)
        for n in faulty:
            damaged[n] = rng.choice(("qqzz r0, r1", "for (;;) {", "mov r0, r1 r2", "}", "mov r0"))
        assert [f.line - 1 for f in fault("\n".join(damaged)).faults] == faulty


def test_faults_of_lines_come_first_and_those_of_the_whole_once_they_are_mended():
    faulty = pixel("maad r0, r1", "mov r0", "mov r0, l3", "break")
    assert [f.line for f in fault(faulty).faults] == [2, 3]
    mended = faulty.replace("maad r0, r1", "mov r0, r1").replace("mov r0\n", "mov r0, r1\n")
    assert [f.line for f in fault(mended).faults] == [5]
    assert [f.line for f in fault(mended.replace("break\n", "")).faults] == [4]


@pytest.mark.parametrize(
    "line",
    [
        "dcl_literal l3, 1",
        "dlc_literal l3, 0, 0, 0, 0",
        "dcl_cb r0",
        "dcl_cb_all(3) cb0[5]",
        "dcl_input_position_interp(banana) vWinCoord0.xy__",
        "dcl_input_position_all(linear) vWinCoord0.xy__",
        "dcl_output_generic(banana) o0",
    ],
)
def test_a_faulty_declaration_counts_for_what_it_may_declare(line):
    assert [f.line for f in fault(pixel(line, "mov r0, l3")).faults] == [2]


@pytest.mark.parametrize("text", FAULTY["texts"])
def test_what_is_no_kernel_is_refused_once(text):
    (found,) = fault(text.replace(" / ", "\n")).faults
    assert FAULTY["texts"][text] in found.message


def test_a_listing_of_compiled_code_is_told_from_il():
    (found,) = fault(ck.compile("sgemm_naive").listing()).faults
    assert "this is compiled code" in found.message


#: Words for integers, and what they make of 5 and 3.
INTEGER = {"uadd": 8, "usub": 2, "ueq": 0, "une": -1, "ushl": 40, "lshl": 40, "lsr": 0}
INTEGER |= {"asr": 0, "uand": 1, "uor": 7, "uxor": 6, "ile": 0, "igt": -1, "ule": 0, "ugt": -1}
INTEGER |= {"mul24": 15, "mullo": 15, "mulhi": 0, "mulhu": 0, "urem": 2, "or": 7, "xor": 6}
INTEGER |= {"add_int": 8, "sub_int": 2, "lshl_int": 40, "max_uint": 5, "min_int": 3, "idd": 0}
INTEGER |= {
    "nand": -2,
    "mulu": 15,
    "addu": 8,
    "subi": 2,
    "iadc": 8,
    "imix": 3,
    "umim": 3,
    "imac": 0,
}


@pytest.mark.parametrize("word", INTEGER)
def test_what_is_proposed_for_a_word_computes_what_it_meant(word):
    """Or nothing is proposed: another letter is another type or relation."""
    said = str(fault(compute(f"{word} r1, r2, r3"))).splitlines()[0]
    proposed = re.findall(r"`([^`]+)`", said.partition("`" + word)[2])
    given = "dcl_literal l0, 5, 3, 0, 0", "mov r2, l0.x", "mov r3, l0.y", "mov r4.x, vaTid.x"
    lines = [
        name if " " in name else f"{name} r1, {'r2, ' * (len(OPCODES[name].sources) > 1)}r3"
        for name in proposed
        if name.split()[0] in OPCODES
    ]
    if not lines or "An instruction is" in said:
        return
    lines = [lines[-1]] if " " in proposed[-1] else lines
    memory = np.zeros((64, 4), np.int32)
    text = compute(
        *given, *[line.replace("not r1, r3", "not r1, r1") for line in lines], "mov g[r4.x], r1"
    )
    ck.launch(ck.assemble(text), 64, global_memory=memory)
    assert memory[0, 0] == INTEGER[word], said


@pytest.mark.parametrize(
    ("lines", "line", "said"),
    [
        (
            ["mdef(1)_out(1)_in(1)", "mov out0, in2", "mend"],
            2,
            "macro 1 uses in2: for that it needs `_in(3)`",
        ),
        (
            ["mdef(1)_out(0)_in(1)", "mov out0, in0", "mend"],
            2,
            "macro 1 uses out0: for that it needs `_out(1)`",
        ),
        (["mdef(1)_out(0)_in(0)", "mend"] * 2, 4, "macro 1 is defined twice, first in line 2"),
        (
            [
                "mdef(1)_out(1)_in(1)",
                "add out0, in0, l0",
                "mend",
                "dcl_literal l0, 1, 1, 1, 1",
                "mcall(1) (r0), (r1)",
            ],
            3,
            "l0 is not declared: add `dcl_literal l0, ...`",
        ),
    ],
)
def test_faults_of_macros_have_the_names_of_the_text(lines, line, said):
    assert [(found.line, found.message) for found in fault(pixel(*lines)).faults] == [(line, said)]


@pytest.mark.parametrize(
    "line",
    [
        "7.15 uav_raw_load_id(0) r0, r1",
        "7.5 dcl_raw_uav_id(0)",
        "7.6 kill r0",
        "7.6 sample_l_resource(0)_sampler(0) r0, r1",
        "7.16 lds_read_add_resource(0) r0, r1, r2",
        "7.16 lds_load_byte_id(0) r0, r1",
        "7.17 gds_load_id(0) r0, r1",
        "7.4 switch r0.x",
        "7.4 callnz b0, 3",
        "7.11 sin_vec r0, r1",
    ],
)
def test_reports_what_the_subset_leaves_out_with_its_section(line):
    section, kernel = line.split(maxsplit=1)
    said = str(fault(pixel(kernel)))
    assert "not in cypresskit's subset" in said and "Did you mean" not in said
    assert f"({section} " in said or f"(section {section} " in said


MNEMONICS = (HERE / "il_mnemonics.txt").read_text(encoding="utf-8").split()


@pytest.mark.parametrize("name", sorted({*MNEMONICS} - {*OPCODES, "mdef", "mend"}))
def test_every_mnemonic_of_amds_il_is_known_or_rejected_by_name(name):
    """All mnemonics of the language's public headers: 485, of later chips too."""
    said = str(fault(compute(f"{name} r0, r1, r2")))
    assert f"`{name}" in said and (
        "not in cypresskit's subset of AMD's IL (" in said or "an earlier chip" in said
    )
    assert "Did you mean" not in said and "no instruction of IL" not in said
    assert re.search(r"\b(Use|Leave|Here) ", said), f"what to write instead: {said}"


def test_what_authors_of_that_time_wrote_is_read():
    group = ck.assemble("il_cs\ndcl_max_thread_per_group 256\nret_dyn\nendmain\nend").group
    assert group == 256
    names = "vTGroupid0 vTid0 vaTid vAbsTidFlat0 vTidInGrpFlat0 vThreadGrpIdFlat0"
    body = ck.assemble(compute(*(f"mov r0, {name}" for name in names.split()))).body
    kinds = "vThreadGrpIdFlat vTidInGrpFlat vAbsTidFlat vAbsTidFlat vTidInGrpFlat"
    assert [i.sources[0].register.kind for i in body] == [*kinds.split(), "vThreadGrpIdFlat"]
    assert only("div_ieee r0, r1, r2") == only("div r0, r1, r2")
    first = "mdef(7)_out(1)_in(1)\nmov out0, in0\nmend\n"
    assert ck.assemble(first + pixel("mcall(7) (r0), (r1)")) == ck.assemble(
        pixel(first + "mcall(7) (r0), (r1)")
    )


def test_a_literal_that_is_an_address_is_declared():
    ck.assemble(compute("dcl_literal l3, 5, -1, 0, 0", "mov g[l3.y+4], r0"))
    assert "l4 is not declared" in str(fault(compute("mov r0, g[l4.x]")))


@pytest.mark.parametrize(
    "lines", [("ret_dyn", "mov r0, r1"), ("if_logicalnz r0.x", "ret_dyn", "endif")]
)
def test_a_return_from_the_middle_is_refused(lines):
    assert "last instruction" in str(fault(pixel(*lines)))


@pytest.mark.parametrize(
    ("lines", "line", "said"),
    [
        (("mov r0, r1",), 3, "nothing may follow `endmain` but `end`"),
        (("mdef(1)_out(0)_in(0)", "ret_dyn", "mend"), 4, "`ret_dyn` inside a macro"),
        (("func 1",), 3, "Use a macro"),
        (("call_logicalnz r0.x, 1",), 3, "Use a macro"),
    ],
)
def test_faults_after_the_end_are_reported_where_they_are(lines, line, said):
    error = fault(pixel("endmain", *lines))
    assert [f.line for f in error.faults] == [line] and said in error.faults[0].message, str(error)


def test_rcp_takes_the_last_component():
    written = {"r1.yxzw_neg": "r1.w_neg(xyzw)", "r1.y": "r1.y", "r1": "r1.w"}
    for source, read in written.items():
        assert str(only(f"rcp r0, {source}").sources[0]) == read
    assert str(only("rcp_vec r0, r1").sources[0]) == "r1"


def test_what_amds_compilers_write_has_the_meaning_of_what_it_stands_for():
    """Brook+ and AMD's own shaders write `and`."""
    operands = "r0.x__w, r1.yz_neg(xyzw), r2.0xw1_neg"
    both, integers = (only(f"{name} {operands}") for name in ("and", "iand"))
    assert both == replace(integers, opcode="and") and both.op.same == "iand"


#: The last cell of each row of the page: the example, as a reader would copy it.
EXAMPLES = {
    name: re.sub(r"`(.*?)`(<br>)?", r"\1\n", example)
    for name, example in re.findall(
        r"(?m)^\| `(\w+)` \|.* (`.*`) \|$",
        (HERE.parent / "docs/il.md").read_text(encoding="utf-8"),
    )
}


def using(op, example: str) -> str:
    """A kernel that is the opcode's example, what it needs declared, and little else."""
    at_a_pixel = op.name in ("dcl_input_position_interp", "dcl_output_generic")
    lines = [OPCODES["dcl_resource"].example.replace("(1)", "(0)", 1), "dcl_literal l0, 0, 0, 0, 0"]
    lines += ["mdef(7)_out(1)_in(1)", "mov out0, in0", "mend"] * (op.kind == "macro")
    lines += ["dcl_lds_id(0) 64"] * (not at_a_pixel) + [f"mov r{n}, l0" for n in range(6)]
    return (pixel if at_a_pixel else compute)(
        *lines, *example.rstrip().removesuffix("end").splitlines()
    )


@pytest.mark.parametrize("op", OPCODES.values(), ids=lambda op: op.name)
def test_every_example_of_the_reference_assembles_and_runs(op):
    program = ck.assemble(using(op, EXAMPLES[op.name]))
    pixel = program.mode == "pixel"
    texel = np.ones((8, 8, 4), np.float32)
    memory = None if pixel else np.zeros((64, 4), np.float32)
    domain = (8, 8) if pixel else 64
    ck.launch(program, domain, inputs={0: texel, 1: texel}, outputs={}, global_memory=memory)


def test_the_reference_has_every_register_and_modifier():
    names = ["r9", "l9", "cb9[3]", "o7", "mem", "g[r0.x]", "in0", "out1", *INPUT_NAMES]
    for name in [*names, "_neg", "_ieee"]:
        assert reference.find(name)


def test_the_reference_page_is_current():
    assert (HERE.parent / "docs/il.md").read_text(encoding="utf-8") == il_page.page()


@pytest.mark.parametrize("seed", seeds(6))
def test_the_instruction_that_is_suggested_for_a_statement_is_one(seed):
    """Of random statements: it assembles, with the literal that it names; or none is suggested."""
    rng = random.Random(seed)
    names = ["r1", "r2.x", "r3", "sum", "acc", "1.0", "-0.5", "2", "l0.y"]
    forms = ["{}", "-{}", "{} * {}", "{} + {}", "{} - {}", "{} * {} + {}", "{} + {} * {}", "!{}"]
    forms += ["({} + {}) * {}", "{} << {}", "mad({}, {}, {})", "add({}, {})", "end", "{} * {} - {}"]
    found = 0
    for _ in range(60):
        form = rng.choice(forms)
        operator = rng.choice(["=", "+=", "-=", "*=", "|=", ":="])
        expression = form.format(*(rng.choice(names) for _ in range(3)))
        said = suggest_statement(f"{rng.choice(['r9', 'sum', 'r1.x'])} {operator} {expression}")
        if parts := re.findall("`([^`]+)`", said.partition("sources`")[2]):
            instruction, *literal = parts
            ck.assemble(compute("dcl_literal l0, 1.0, 2.0, 0, 0", *literal, instruction))
            found += 1
    assert found > 10


@pytest.mark.parametrize("opcode", ["gt", "le", "inc", "dec"])
def test_instructions_in_a_suggestion_assemble(opcode):
    """With the literal that it declares, if any."""
    said = re.findall("`([^`]+)`", suggest_statement(f"{opcode} r1.x, r2.x, r3.x"))
    written = [line for line in said if not line.startswith(("gt", "le"))]
    assert written and ck.assemble(compute(*sorted(written, key=lambda line: "dcl" not in line)))


#: Names of registers of earlier chips' IL, and of other kinds of kernels, with what replaces them.
OTHER_REGISTERS = {
    "v0": "vWinCoord0.xy",
    "vPos": "vWinCoord0.xy",
    "vObjIndex0": "vAbsTidFlat.x",
    "vFace0": "vWinCoord0.xy",
    "x0": "LDS or `g[r1.x]`",
    "a0": "g[r1.x+1]",
    "aL": "g[r1.x+1]",
    "c3": "cb0[0]",
    "i0": "dcl_literal",
    "b1": "dcl_literal",
    "t0": "sample_resource(0)",
    "g0": "g[r1.x]",
}


@pytest.mark.parametrize("name", OTHER_REGISTERS)
def test_a_register_of_other_il_is_told_once_with_what_replaces_it(name):
    text = f"""il_ps_2_0
dcl_output_generic o0
mov r0, {name}
add r1, {name}, r0
mul r1, r1, {name}.y
mov o0, r9999999
end
"""
    with pytest.raises(ck.ILError) as caught:
        ck.assemble(text, "old.il")
    first, other = caught.value.faults
    assert first.line == 3 and OTHER_REGISTERS[name] in first.message and other.line == 6


UNSUPPORTED_LINES = {
    "mova r0, r1": "g[r1.x+1]",
    "mul_x2 r0, r1, r2": "`mul` by 2.0",
    "mov_d4 r0, r1": "`mul` by 0.25",
    "lds_xor_id(0) r0.x, r1.x": "lds_store_id(0)",
    "lds_read_add_id(0) r0.x, r1.x, r2.x": "lds_store_id(0)",
    "lds_load_struct_id(0) r0, r1.x, r2.x": "lds_load_vec_id(0)",
    "lds_store_byte_id(0) r1.x, r2.x": "whole words",
    "gds_add_id(0) r1.x, r2.x": "`g[]`",
    "texld_stage(0) r0, r1": "sample_resource(0)",
    "srv_load_id(0) r0, r1": "`g[]`",
}


@pytest.mark.parametrize("line", UNSUPPORTED_LINES)
def test_what_is_not_supported_is_told_with_what_replaces_it(line):
    with pytest.raises(ck.ILError) as caught:
        ck.assemble(f"il_cs_2_0\ndcl_lds_id(0) 64\n{line}\nend\n", "mine.il")
    (fault,) = caught.value.faults
    assert UNSUPPORTED_LINES[line] in fault.message


def test_a_control_that_is_the_only_one_is_told_in_the_singular():
    with pytest.raises(ck.ILError, match=r"has no control `_q8`\. There is `lds_load_vec`\."):
        ck.assemble("il_cs_2_0\ndcl_lds_id(0) 64\nlds_load_q8_id(0) r0, r1.x\nend\n", "mine.il")


@given(
    st.sampled_from([0, 1, ALL - 1, ALL, ALL + 1, 2 * ALL]) | st.integers(0, 10**10), st.booleans()
)
def test_a_number_has_32_bits(number, is_hexadecimal):
    written = f"0x{number:x}" if is_hexadecimal else str(number)
    text = pixel(f"dcl_literal l0, {written}, 0, 0, 0", "mov o0, l0")
    if number <= ALL:
        out = np.zeros((1, 1, 4), np.uint32)
        ck.launch(ck.assemble(text), (1, 1), outputs={0: out})
        assert out[0, 0, 0] == number
    else:
        with pytest.raises(ck.ILError, match=rf"`{written}\S*` does not fit in 32 bits"):
            ck.assemble(text)


@pytest.mark.parametrize("given_outputs", range(3))
@pytest.mark.parametrize("given_inputs", range(4))
def test_a_macro_is_called_with_as_many_outputs_and_inputs_as_it_has(given_outputs, given_inputs):
    macro = "mdef(1)_out(1)_in(2)", "add out0, in0, in1", "mend"
    outputs = ", ".join(f"r{n}" for n in range(given_outputs))
    inputs = ", ".join(["l0"] * given_inputs)
    text = pixel(*macro, "dcl_literal l0, 1, 2, 3, 4", f"mcall(1) ({outputs}), ({inputs})")
    if (given_outputs, given_inputs) == (1, 2):
        assert ck.assemble(text)
    else:
        said = f"takes 1 outputs and 2 inputs, found {given_outputs} and {given_inputs}"
        with pytest.raises(ck.ILError, match=said):
            ck.assemble(text)
