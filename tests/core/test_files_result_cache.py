"""Saved results: what comes from disk is what would be simulated, or it is simulated."""

import pickle
import random
import re
import zlib
from contextlib import suppress
from dataclasses import fields, replace

import pytest
from forbidden import forbid
from kept import forget
from new_python import printed_by
from sampling import seeded

import cypresskit as ck
from cypresskit import compiler
from cypresskit.files import result_cache
from cypresskit.isolated.process import ForkServer
from cypresskit.timing import simulate
from tools.fuzz.programs import random_program

LAUNCHES = [
    ("sgemm_64x64_lds", {"n": 256, "k": 70}),
    ("dgemm_nn_buffer", {"n": 96, "beta": 0.5}),
    ("sgemm_nn", {"n": 160, "device": ck.HD5850}),
]


@pytest.fixture(autouse=True)
def folder(saved_results):
    """Each test's own."""
    return saved_results


def all_of(report):
    """All that a report and its costs say, as text and bytes."""
    arrays = report.events, report.use.clocks, report.use.wavefronts, *report.use.shares.values()
    costs = ck.line_costs(report)
    numbers = (str(report), report.error, report.lines)
    said = repr((numbers, costs.lines, costs.iterations, costs.wavefronts))
    return said.replace("np.float64", ""), [array.tobytes() for array in arrays]


@pytest.mark.parametrize("name, size", LAUNCHES)
def test_what_comes_from_disk_is_the_same_to_the_last_digit(name, size, folder, monkeypatch):
    monkeypatch.setenv("CYPRESSKIT_KEEP", "0")
    anew = all_of(simulate(name, **size))
    assert not result_cache.saved_files(folder)
    monkeypatch.setenv("CYPRESSKIT_KEEP", "1")
    forget()
    assert all_of(simulate(name, **size)) == anew
    assert len(result_cache.saved_files(folder)) == 4  # compiled code, times, lines, costs
    forget()
    with monkeypatch.context() as patch:
        patch.setattr("cypresskit.timing.sampling.run", forbid("simulate again"))
        patch.setattr("cypresskit.timing.timed_launch.trace_wavefronts", forbid("trace again"))
        patch.setattr("cypresskit.timing.timed_launch.compile", forbid("compile again"))
        assert all_of(simulate(name, **size)) == anew


@seeded(1)
def test_damage_of_any_kind_is_a_simulation_again(seed, folder):
    size = {"n": 32, "k": 8}
    expected = all_of(simulate("sgemm_tn", **size))
    assert simulate("sgemm_nn", **size).lines
    whole = {file: file.read_bytes() for file in result_cache.saved_files(folder)}
    rng = random.Random(seed)
    for _ in range(4):
        for file, data in whole.items():
            cut, other = data[: rng.randrange(len(data))], whole[rng.choice(sorted(whole))]
            unsealed = zlib.compress(pickle.dumps(rng.random()))
            file.write_bytes(rng.choice((cut, other, unsealed, rng.randbytes(9), data)))
        rng.choice(sorted(whole)).unlink()
        forget()
        assert all_of(simulate("sgemm_tn", **size)) == expected


def test_files_edited_while_python_runs_keep_nothing(folder, monkeypatch):
    monkeypatch.setattr(result_cache.SOURCES, "files", list)
    simulate("sgemm_tn", 64)
    assert not result_cache.saved_files(folder)


ORDER = """
import sys

class Note:
    def find_spec(self, name, path=None, target=None):
        if name == "cypresskit.files.result_cache":
            print(sorted(m for m in sys.modules if m.startswith("cypresskit.")))

sys.meta_path.insert(0, Note())
import cypresskit
"""


def test_the_models_files_are_read_before_they_are_imported():
    """Else results of what Python holds would be saved by the key of files edited since."""
    assert printed_by(ORDER) == "['cypresskit.files']\n"


def random_text(draw):
    """A random program that the chip has enough registers for."""
    while True:
        text, _ = random_program(draw, statements=12)
        with suppress(compiler.CompileError):
            compiler.compile(ck.assemble(text, "kernel.il"), ck.HD5850)
            return text


def respell(text, rng, ends=("\n",)):
    """The same instructions as another reader may write them, each line with one of these ends."""
    rows = []
    for row in text.splitlines():
        code = row.partition(";")[0].rstrip()
        code = re.sub(r"(?<=\.)(?=[xyzw_]*_)[xyzw_]{4}(?=,)", lambda m: m[0].replace("_", ""), code)
        code = re.sub(", *", lambda _: rng.choice((",", ", ", " ,  ")), code)
        rows.append(rng.choice(("", "  ")) + code + rng.choice(("", " ", " ; mine, too")))
    return "".join(row + rng.choice(ends) for row in rows)


@seeded(3)
def test_another_spelling_has_the_same_results_and_its_own_text(seed, folder, monkeypatch):
    """Comments, blanks and the spelling of a mask are no part of a kernel's meaning."""
    rng = random.Random(seed)
    like, said = ck.kernels[rng.choice(["sgemm_tn", "sgemm_64x64_lds", "dgemm_tn"])], {}
    for text in like.text, respell(like.text, rng, ("\n", "\n\n", "\n; a line\n")):
        forget()
        report = simulate(ck.load_kernel(text, like=like), 64)
        costs = ck.line_costs(report)
        rows = [text.splitlines()[work.line - 1].strip() for work in report.lines]
        assert [work.text for work in report.lines] == [each.text for each in costs.lines] == rows
        place = {each.line: n for n, each in enumerate(costs.lines)}
        works = [
            (each.cost, each.work.clocks, [place[line] for line in each.measured_with])
            for each in costs.lines
        ]
        said[text] = report.clocks, works, result_cache.saved_files(folder)
        monkeypatch.setattr("cypresskit.timing.sampling.run", forbid("simulate again"))
    first, second = said.values()
    assert first == second


@seeded(3)
def test_compiled_code_comes_from_disk_as_it_was(seed, folder, monkeypatch):
    """Of random programs; and of one behind other constants or lines."""
    monkeypatch.setenv("CYPRESSKIT_KEEP", "0")
    text = random_text(random.Random(seed))
    kernel = ck.kernels["sgemm_tn"].text
    head, loop, rest = kernel.partition("whileloop")
    programs = [
        ck.assemble(text, "random.il"),
        ck.assemble(loop + rest, before=head),
        ck.assemble(loop + rest, before=head.replace("mov r14, l0.z", "mov r14, l0.x")),
        ck.assemble(loop + rest, before=head.rstrip("\n") + "\n; a line\n\n"),
    ]

    def compiled():
        forget()
        return [compiler.compile(program, ck.HD5850) for program in programs]

    anew = compiled()
    monkeypatch.setenv("CYPRESSKIT_KEEP", "1")
    compiled()
    assert len(result_cache.saved_files(folder)) == len(programs)
    programs[0] = ck.assemble(respell(text, random.Random(seed)), "random.il")
    monkeypatch.setattr(compiler, "lower", forbid("compile again"))
    for code, expected in zip(compiled(), anew):
        assert (code.controls, code.gprs) == (expected.controls, expected.gprs)
        assert code.listing() == expected.listing()


@pytest.mark.parametrize("sandbox", [False, True])
def test_a_judge_neither_reads_nor_keeps(sandbox):
    _, environment = ForkServer(sandbox=["bwrap"] if sandbox else None).command()
    assert environment["CYPRESSKIT_KEEP"] == "0"


def test_whatever_a_time_depends_on_is_in_the_key():
    launch = simulate("sgemm_tn", 64).launch
    keys = [launch.key("time"), launch.key("lines")]

    def add(**changed):
        keys.append(replace(launch, **changed).key("time"))

    text = ck.kernels["sgemm_tn"].text
    head, loop, rest = text.partition("whileloop")
    before = head.replace("mov r14, l0.z", "mov r14, l0.x")  # lines that aren't counted
    add(kernel=replace(ck.kernels["sgemm_tn"], given=ck.assemble(loop + rest, before=before)))
    for change in ({"size": (64, 64, 72)}, {"size": (64, 72, 64)}, {"beta": 1.0}, {"exact": True}):
        add(**change)
    for each in fields(ck.Device):
        value = getattr(ck.HD5870, each.name)
        if isinstance(value, (int, float)):
            other = replace(ck.HD5870)
            object.__setattr__(other, each.name, value + 1)
            keys.append(replace(launch, device=other).key("time"))
    own = type("Own", (ck.Device,), {})(name="HD 5870")  # its properties may be its own
    assert replace(launch, device=own).key("time") is None
    assert len(keys) > 30
    assert len({*keys}) == len(keys)
