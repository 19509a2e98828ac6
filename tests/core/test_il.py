"""The IL front end: everything that production kernels use is read, everything else is refused with
a reason.
"""

import random
import re
import tomllib
from dataclasses import replace

import numpy as np
import pytest
from case_files import compare_with_case
from hypothesis import given
from hypothesis import strategies as st
from kernel_texts import compute, pixel
from repository import ROOT
from sampling import from_rows, seeded

import cypresskit as ck
from cypresskit.il import OPCODES, reference
from cypresskit.il.bits import ALL
from cypresskit.il.other_languages import suggest_statement
from cypresskit.il.registers import INPUT_NAMES
from tools import il_page


def only(line):
    """The one instruction that ``line`` assembles to."""
    return pixel(line).body[0]


def test_everything_that_production_kernels_use_is_read():
    text = (ROOT / "tests/everything.il").read_text()
    program = ck.assemble(text, "all.il")
    assert str(program) == text and ck.assemble(text.replace(",", " ,  ")) == program


@seeded(6)
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


@from_rows
def test_a_comment_is_refused_only_where_it_is_an_instruction(comment):
    assert only(f"mov r0, r1 {comment}").opcode == "mov"
    assert pixel("; mov r0, r1", "mov r0, r1")  # a whole line is left out on purpose


@from_rows
def test_short_swizzles_are_filled_by_repeating_them(short, swizzle):
    assert only(f"mov r1, r0.{short}").sources[0].swizzle == swizzle


@pytest.mark.parametrize(
    "short, mask",
    [("x___", "x___"), ("__zw", "__zw"), ("y_w", "_y_w"), ("yz", "_yz_"), ("w", "___w")],
)
def test_masks_are_read_from_the_left(short, mask):
    assert only(f"mov r1.{short}, r0").dest.mask == mask


def test_the_spelling_of_a_literal_decides_its_type():
    program = pixel("dcl_literal l0, 1, 1.0, -1, 0x7fc00000", "mov r0, l0")
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
    program = pixel("dcl_literal l0, 1.0, 1.0, 1.0, 1.0", *macro, *calls)
    moved = [f"{i.opcode} {', '.join(map(str, (i.dest, *i.sources)))}" for i in program.body[1:7]]
    assert moved[:4] == ["mov r3, r0.zwzw", "mul r4, r3, l1", "mov r5, r4", "mov r1.xy__, r5"]
    assert moved[5] == "mul r7, r6, l2", "a second call has registers and literals of its own"
    assert program.literals[2] == (0x40000000,) * 4


def fault(text, before=""):
    with pytest.raises(ck.ILError) as caught:
        ck.assemble(text, "mine.il", before=before)
    return caught.value


FAULTY = ROOT / "tests/cases/faulty_texts.toml"


@pytest.mark.parametrize("text", tomllib.loads(FAULTY.read_text()))
def test_a_faulty_text_is_reported_with_places_and_advice(text, request):
    faults = fault(text.replace(" / ", "\n")).faults
    compare_with_case(
        request, FAULTY, text, "\n".join(f"{f.line}:{f.column}: {f.message}" for f in faults)
    )


BLOCK = re.compile(r"(whileloop|endloop|if\w*|else|endif)\b")


def slip(rng, line):
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


@seeded(3)
def test_a_random_slip_is_reported_once_at_its_place(seed):
    rng = random.Random(seed)
    lines = [
        (kernel.name, n)
        for kernel in ck.kernels.values()
        for n, line in enumerate(kernel.text.splitlines())
        if n and line.split(";")[0].strip() and not line.startswith("end")
    ]
    reports = 0
    for name, n in rng.choices(lines, k=100):
        text = ck.kernels[name].text.splitlines()
        code = text[n].split(";")[0].strip()
        text[n] = slip(rng, code)
        try:
            ck.assemble("\n".join(text), "mine.il")
        except ck.ILError as error:
            here = [found for found in error.faults if found.line == n + 1]
            declares = code.startswith(("dcl", "mdef", "mend"))
            assert declares or len(error.faults) == len(here) == 1, f"{text[n]!r}: {error}"
            first = error.faults[0]
            place, shown, caret, *_ = str(error).splitlines()
            at = caret.index("^")
            assert place.startswith(f"mine.il:{first.line}:{first.column}: ")
            assert at <= len(shown) and shown[at:] == text[first.line - 1][first.column - 1 :]
            reports += 1
    assert reports > 50


def test_the_lds_arrays_of_a_workgroup_share_its_32_kb():
    assert compute("dcl_lds_id(0) 16384", "dcl_lds_id(1) 16384")


@pytest.mark.parametrize("name", ["dgemm_tn_stream_2x8", "sgemm_64x64_lds", "sgemv_n_reduce4"])
@seeded(2)
def test_faulty_lines_are_reported_each_and_alone(name, seed):
    lines = ck.kernels[name].text.splitlines()
    written = [n for n, line in enumerate(lines) if line.partition(";")[0].strip()]
    rng = random.Random(f"{name} {seed}")
    for _ in range(10):
        faulty = sorted(rng.sample(written, rng.randint(1, 8)))
        damaged = list(lines)
        for n in faulty:
            damaged[n] = rng.choice(("qqzz r0, r1", "for (;;) {", "mov r0, r1 r2", "}", "mov r0"))
        assert [f.line - 1 for f in fault("\n".join(damaged)).faults] == faulty
        given = rng.randrange(faulty[0] + 1)  # lines that stand before what somebody writes
        found = fault("\n".join(damaged[given:]), before="\n".join(damaged[:given])).faults
        assert [f.line - 1 + given for f in found] == faulty


MNEMONICS = (ROOT / "tests/il_mnemonics.txt").read_text().split()


@pytest.mark.parametrize("name", sorted({*MNEMONICS} - {*OPCODES, "mdef", "mend"}))
def test_every_mnemonic_of_amds_il_is_known_or_rejected_by_name(name):
    """All mnemonics of the language's public headers: 485, of later chips too."""
    said = str(fault(f"il_cs_2_0\n{name} r0, r1, r2\nend"))
    assert f"`{name}" in said and (
        "not in cypresskit's subset of AMD's IL (" in said or "an earlier chip" in said
    )
    assert "Did you mean" not in said and "no instruction of IL" not in said
    assert re.search(r"\b(Use|Leave|Here) ", said), f"what to write instead: {said}"


def test_what_authors_of_that_time_wrote_is_read():
    group = ck.assemble("il_cs\ndcl_max_thread_per_group 256\nret_dyn\nendmain\nend").group
    assert group == 256
    names = "vTGroupid0 vTid0 vaTid vAbsTidFlat0 vTidInGrpFlat0 vThreadGrpIdFlat0"
    body = compute(*(f"mov r0, {name}" for name in names.split())).body
    kinds = "vThreadGrpIdFlat vTidInGrpFlat vAbsTidFlat vAbsTidFlat vTidInGrpFlat"
    assert [i.sources[0].register.kind for i in body] == [*kinds.split(), "vThreadGrpIdFlat"]
    assert only("div_ieee r0, r1, r2") == only("div r0, r1, r2")
    macro, call = "mdef(7)_out(1)_in(1)\nmov out0, in0\nmend", "mcall(7) (r0), (r1)"
    assert ck.assemble(f"{macro}\nil_ps_2_0\n{call}\nend") == pixel(macro, call)


def test_a_literal_that_is_declared_may_be_an_address():
    assert compute("dcl_literal l3, 5, -1, 0, 0", "mov g[l3.y+4], r0")


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
        r"(?m)^\| `(\w+)` \|.* (`.*`) \|$", (ROOT / "docs/il.md").read_text()
    )
}


def using(op, example):
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
    program = using(op, EXAMPLES[op.name])
    is_pixel = program.mode == "pixel"
    texel = np.ones((8, 8, 4), np.float32)
    memory = None if is_pixel else np.zeros((64, 4), np.float32)
    domain = (8, 8) if is_pixel else 64
    ck.launch(program, domain, inputs={0: texel, 1: texel}, outputs={}, global_memory=memory)


def test_the_reference_has_every_register_and_modifier():
    names = ["r9", "l9", "cb9[3]", "o7", "mem", "g[r0.x]", "in0", "out1", *INPUT_NAMES]
    for name in [*names, "_neg", "_ieee"]:
        assert reference.find(name)


def test_the_reference_page_is_current():
    assert (ROOT / "docs/il.md").read_text() == il_page.page()


@seeded(6)
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
            assert compute("dcl_literal l0, 1.0, 2.0, 0, 0", *literal, instruction)
            found += 1
    assert found > 10


WRITTEN = st.sampled_from(["{:d}", "0x{:x}"])


@given(st.sampled_from([0, 1, ALL - 1, ALL]) | st.integers(0, ALL), WRITTEN)
def test_a_number_has_32_bits(number, written):
    out = np.zeros((1, 1, 4), np.uint32)
    program = pixel(f"dcl_literal l0, {written.format(number)}, 0, 0, 0", "mov o0, l0")
    ck.launch(program, (1, 1), outputs={0: out}, engine="interpreter")
    assert out[0, 0, 0] == number


@given(st.sampled_from([ALL + 1, 2 * ALL]) | st.integers(ALL + 1, 10**10), WRITTEN)
def test_a_number_of_more_bits_is_refused(number, written):
    with pytest.raises(ck.ILError, match=rf"`{written.format(number)}\S*` does not fit in 32 bits"):
        pixel(f"dcl_literal l0, {written.format(number)}, 0, 0, 0", "mov o0, l0")
