"""The workbench in Python: what a text becomes, the order of answers, the history."""

import json
import os
import random
import re
import threading
import tomllib
import warnings
from collections import Counter
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from case_files import compare_with_case, edit_text
from changed_texts import mistype
from repository import ROOT
from sampling import from_rows, seeded

import cypresskit as ck
from cypresskit import compiler
from cypresskit.editing import dynamic_answers, judgment, page_files, static_answers
from cypresskit.editing.answering import LocalAnswerer
from cypresskit.editing.conversation import Conversation
from cypresskit.editing.edit_history import Edits, describe_change
from cypresskit.editing.kernel_file import KernelFile
from cypresskit.editing.protocol import ALL_PARTS, PARTS
from cypresskit.editing.small_product import multiply_small
from cypresskit.editing.steps import STEPS, reference_kernel
from cypresskit.il import dataflow
from cypresskit.il.cursor import bare_line
from cypresskit.kernels.compiled import kernel_stats
from cypresskit.timing.launch_time import find_limit

TEXT = ck.kernels["sgemm_tn"].text
NAIVE = ck.kernels["sgemm_naive"].text
WRONG = NAIVE.replace("r2.x, r3.x", "r2.x, r2.x")
FAULT = f"'line': {TEXT.split('mad')[0].count(chr(10)) + 1},"
LOADED = "\n".join(f"mov r{n}, g[{n}]" for n in range(130))
REFUSED = f"il_ps_2_0\n{LOADED}\n" + "\n".join(f"mov g[{n}], r{n}" for n in range(130)) + "\nend"


# -- what a text becomes


@pytest.mark.parametrize("name", ["sgemm_naive", "sgemm_tn", "sgemm_64x64_lds", "ddgemm_tn_nofma"])
def test_live_registers_are_those_of_the_dataflow(name):
    program = ck.kernels[name].program
    answer = static_answers.text_answer(ck.kernels[name].text, program.name)
    before = dataflow.liveness(program)
    most = max(len({number for number, _ in live}) for live in before)
    rows = answer["registers"]
    assert max(len(row["live"]) for row in rows) == most
    assert [row["line"] for row in rows] == sorted({row["line"] for row in rows})
    sets = {(row["line"], name) for row in rows for name in row["sets"]}
    written = ((i.written_line, dataflow.defines(i)) for i in program.body)
    assert sets == {(n, program.as_written(f"r{r}")) for n, keys in written for r, _ in keys}


@pytest.mark.parametrize("name", ["sgemm_naive", "sgemm_64x64_lds", "dgemm_tn_stream"])
def test_rows_are_the_compiled_code(name):
    code = compiler.compile(ck.kernels[name].program)
    answer = static_answers.code_answer(ck.kernels[name].program)
    bundles = [bundle for control in code.controls for bundle in control.bundles]
    rows = [row for row in answer["rows"] if row["kind"] == "alu"]
    assert [[each[:3] for each in row["operations"]] for row in rows] == [
        [[o.slot, o.name, o.line] for o in bundle.operations] for bundle in bundles
    ]
    fetches = [f.line for control in code.controls for f in control.fetches]
    assert [r["operations"][0][2] for r in answer["rows"] if r["kind"] == "fetch"] == fetches
    loop = sum(row["loop"] for row in rows)
    assert loop == answer["card"]["bundles_per_iteration"] == code.stats().bundles_per_iteration
    assert json.loads(json.dumps(answer)) == answer


# -- verdict and clocks


def test_the_small_product_is_what_the_kernel_makes_of_its_factors():
    for name in ("sgemm_naive", "sgemm_tn", "dgemm_nn", "sgemm_64x64_lds"):
        small = multiply_small(ck.kernels[name])
        a, b = small.factors
        assert (a @ b == small.c).all()
        assert small.incorrect_element is None and small.answer()["c"] == small.answer()["expected"]
    warnings.simplefilter("ignore")
    wrong = ck.load_kernel(WRONG, like="sgemm_naive")
    small = multiply_small(wrong)
    assert (small.c == (small.factors[0] ** 2).sum(1)[:, None]).all()
    assert multiply_small(ck.kernels["sgemv_n"]) is None
    assert (
        multiply_small(ck.load_kernel(NAIVE.replace("add r0.z", "add r0.w"), like="sgemm_naive"))
        is None
    )


def replayed(text, like="sgemm_naive", **job):
    """What is said of the first wrong element of a text."""
    said = []
    parts = ["code", "verdict", "clocks", "replay", "costs"]
    job = {"edit": "a", "text": text, "name": "my.il", "like": like, "n": 64, "parts": parts} | job
    LocalAnswerer(said.append).ask(job)
    assert not [m for m in said if m["type"] == "trouble"]
    return {m["part"]: m for m in said if m["type"] == "answer"}


@pytest.mark.parametrize("name", ["sgemm_naive", "dgemm_tn"])
def test_the_sum_of_a_wrong_element_is_that_of_the_small_product(name):
    lines = ck.kernels[name].text.split("\n")
    at = next(n for n, line in enumerate(lines) if re.match(r" *d?mad\b.*, r", line))
    first, second = re.findall(r"r\d+\.?\w*", lines[at])[1:3]
    lines[at] = lines[at].replace(second, first)
    answers = replayed("\n".join(lines), name)
    assert "costs" not in answers
    small, message = answers["verdict"]["small"], answers["replay"]["message"]
    row, column = map(int, re.match(r"C\[(\d+), (\d+)\]", message).groups())
    assert message.startswith(small["sums"][row][column])
    assert small["is_stored_transposed"] == name.endswith("tn")
    words, expected, got = re.search(r"be (.*) = (\d+)\. It is (-?\d+)\.", message).groups()
    assert eval(words.replace("\N{MIDDLE DOT}", "*")) == int(expected)  # our own digits
    assert int(expected) == small["expected"][row][column] != small["c"][row][column] == int(got)
    said = f"C[{row}, {column}] is {got} in place of {expected}"
    assert said in answers["verdict"]["message"], "of the product that is shown"


SAID = ROOT / "tests/cases/workbench.toml"
CASES = tomllib.loads(SAID.read_text())


@pytest.mark.parametrize("name", [name for name in CASES if "bound" not in CASES[name]])
def test_of_a_text_the_workbench_says_the_expected(name, request, monkeypatch):
    """Its verdict, the first finding, what an element's sum lacks, and whether it is timed: an
    incorrect kernel isn't, as it may take minutes, and gigabytes.
    """
    simulated = Mock(side_effect=judgment.simulate)
    monkeypatch.setattr(judgment, "simulate", simulated)
    case = {"like": CASES[name]["of"], "job": {}, "known": ""} | CASES[name]
    given = reference_kernel(case["of"]).text
    text = edit_text(given, case["edits"])
    known = case["known"] and given
    parts = ["verdict", "clocks", "replay"]
    heard = {"clocks": {}, "replay": {}}
    heard |= replayed(text, case["like"] or None, parts=parts, known_text=known, **case["job"])
    said = [" ".join(heard["verdict"].get(part, "") for part in ("message", "aside")).strip()]
    for row in heard["verdict"]["findings"][:2]:
        said += row["message"], row.get("advice")
    traced, clocks = heard["replay"], heard["clocks"]
    fault = (traced.get("findings") or [{}])[0]
    said += traced.get("message"), traced.get("problem")
    said += [" ".join(fault.get(part, "") for part in ("message", "advice")).strip()]
    said += [term["text"] for term in traced.get("terms", [])[:1]]
    said += clocks.get("problem"), "It is timed." * ("gflops" in clocks)
    assert simulated.called == any(word in str(clocks) for word in ("gflops", "can't be timed"))
    compare_with_case(request, SAID, name, " / ".join(filter(None, said)))


@pytest.mark.parametrize("name", [name for name in CASES if "bound" in CASES[name]])
def test_of_a_bound_what_helps_is_the_expected(name, request):
    case = CASES[name]
    like = reference_kernel(case["of"])
    kernel = ck.load_kernel(edit_text(like.text, case["edits"]), like=like)
    compare_with_case(request, SAID, name, judgment.what_helps(case["bound"], kernel))


@from_rows
def test_each_bound_has_its_help(expected, busy, occupied, rounds, channels):
    """And is the busiest unit, or why none is busy, or the channel that is while others wait."""
    limit, said = find_limit({"ALU": 0.1} | busy, occupied, rounds, channels and np.array(channels))
    assert said == expected
    words = judgment.what_helps(limit, reference_kernel("block_8x8"))
    assert " would " in words
    assert ("rows of memory" in words) == ("rows" in expected)


def test_a_hint_that_counts_our_solution_counts_it():
    """As ``registers``, ``wavefronts`` and ``bundles`` of the reference kernel."""
    hints = [step for step in STEPS.values() if "our solution has" in step.hint]
    for step in hints:
        made = kernel_stats(reference_kernel(step.reference))
        counts = re.findall(r"(\d+) (bundles|registers|wavefronts)", step.hint)
        whole = {
            "bundles": made.bundles_per_iteration,
            "registers": made.gprs,
            "wavefronts": made.wavefronts,
        }
        assert len(counts) > 1 and all(int(n) == whole[name] for n, name in counts), step.name
    assert hints


@pytest.mark.parametrize("step", ["03", "04", "05"])
def test_a_step_that_starts_from_a_correct_kernel_is_correct(step):
    """Also where an iteration takes fewer values of k than that of the kernel it is launched like:
    only what line 1 states is held against it.
    """
    chosen = STEPS[step]
    assert judgment.verify_text(chosen.starter, chosen.file, chosen.like).is_correct


@pytest.mark.parametrize("name", ["dgemm_tn", "dgemm_nn"])
def test_a_product_that_is_done_in_part_is_not_timed(name):
    kernel = ck.kernels[name]
    lines = [n for n, i in enumerate(kernel.program.lines) if re.match(r"\s*d?mad r[3-9]", i)]
    left = [text for n, text in enumerate(kernel.program.lines) if n not in lines[2:]]
    mine = ck.load_kernel("\n".join(left), like=kernel)
    with pytest.raises(ValueError, match="leaves out products"):
        judgment.report_at(mine, 1024)
    assert ck.simulate(mine.shape(256, 256, 256)).clocks  # as a launch of any program


def test_the_part_of_llvm_has_its_code_and_speed_of_a_correct_kernel_alone():
    texts = NAIVE, NAIVE.replace("mad r10.x, r2.x", "mad r10.x, r3.x")
    verified = [judgment.verify_text(text, "my.il", "sgemm_naive") for text in texts]
    time = judgment.report_at(verified[0].kernel, 64)
    programs = [each.kernel.program for each in verified]
    right, wrong = map(dynamic_answers.llvm_answer, (time, ""), programs)
    code = ck.compile(NAIVE, by="llvm")
    assert right["card"]["gprs"] == code.gprs and "rows" in wrong
    assert sum(row["loop"] for row in right["rows"]) > 4
    ours = dynamic_answers.clocks_answer(time, verified[0].kernel)
    assert 0 < right["gflops"] != ours["gflops"] and "gflops" not in wrong
    double = ck.kernels["dgemm_naive"].program
    assert "no fused" in dynamic_answers.llvm_answer(time, double)["refusal"]["message"]


# -- the order of answers


def conversation(tmp_path, text, *asked):
    """What a page that shows a text hears, and asks for; the calling process answers."""
    path = tmp_path / "my.il"
    path.write_text(text)
    talk = Conversation(KernelFile(path), {"like": None, "n": 128}, LocalAnswerer)
    said = []
    talk.pages.append(said.append)
    for more in ({"type": "shown"}, *({"type": "ask", "part": part} for part in asked)):
        talk.hear({"edit": talk.edit} | more)
    talk.close()
    return said


@pytest.mark.parametrize(
    ("text", "part", "words"),
    [
        (TEXT.replace("mad", "madd", 1), "text", FAULT),
        (REFUSED, "code", "registers"),
        ("il_ps_2_0\nmov g[0], r0\nend", "verdict", "be launched"),
    ],
)
def test_after_what_rules_a_text_out_nothing_else_follows(text, part, words, tmp_path):
    """Not even what a page asks for: the reader's mistake is no bug."""
    said = conversation(tmp_path, text, *ALL_PARTS)
    assert said[-1]["type"] == "done"
    said = [message for message in said if message["type"] in ("answer", "trouble")]
    assert said[-1].get("part") == part and "card" not in said[-1] and words in str(said[-1])


def test_a_text_is_answered_without_threads_and_child_processes(tmp_path, monkeypatch):
    """As where there are none: in the calling process, all parts, and to the end."""

    def refuse(*_, **__):
        raise RuntimeError("can't start new thread")

    ck.simulate("sgemm_naive", 8)  # loads numba's code, in a thread of its own
    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr("subprocess.Popen.__init__", refuse)
    monkeypatch.setattr("cypresskit.threads.processors", lambda: 1)
    said = conversation(tmp_path, NAIVE)
    assert said[-1]["type"] == "done" and not [m for m in said if m["type"] == "trouble"]
    parts = {message["part"] for message in said if message["type"] == "answer"}
    assert parts == {"text", *PARTS} - {"replay"}, "no element is incorrect"


@seeded(3)
def test_random_edits_are_all_answered_and_none_raises(seed):
    """Whatever is typed, every part that can come comes, and is plain data."""
    said = []
    answerer = LocalAnswerer(said.append)
    rng = random.Random(seed)
    number = 0
    while number < 4:
        name = rng.choice([*ck.kernels])
        text = mistype(ck.kernels[name].text, rng, rng.choice((1, 1, 1, 2, 3)))
        said.clear()
        if static_answers.text_answer(text, name)["faults"]:
            continue
        number += 1
        job = {"edit": str(number), "text": text, "name": "my.il", "n": 128, "like": name}
        job |= {"parts": ["code", "verdict", "clocks", "replay"]}
        answerer.ask(job)
        json.dumps(said, allow_nan=False)
        assert said[-1]["type"] == "done"
        assert not [message for message in said if message["type"] == "trouble"], text
        assert {message["edit"] for message in said} == {str(number)}


SOON = "Correct at small sizes; now at N = 64 …"


class Busy(LocalAnswerer):
    """Answers in this process. A message comes each time that it asks the given number of times."""

    def __init__(self, hear, patience):
        super().__init__(hear)
        self.patience, self.asked = patience, 0

    def has_message(self, seconds=0.0):
        self.asked += 1
        return self.asked == self.patience


def test_a_check_takes_the_verdict_that_its_workbench_has_shown(monkeypatch):
    text, like = ck.kernels["sgemm_naive"].text + "\n", "sgemm_naive"
    job = {"edit": 1, "text": text, "name": "my.il", "like": like, "n": 64, "parts": ["verdict"]}
    LocalAnswerer(lambda message: None).ask(job)
    monkeypatch.setattr(judgment, "verify", None)
    assert judgment.verify_text(text, "my.il", like, 64, False).is_correct
    assert judgment.verify_text(text, "my.il", like=like, n=64).is_correct


@pytest.mark.parametrize(
    ("text", "soon", "stops"),
    [(NAIVE, [SOON], {"verdict": 1, "costs": 2}), (WRONG, [], {"replay": 1})],
)
def test_a_job_is_interrupted_and_resumed(text, soon, stops):
    """Wherever it stops, its answers are the same in the end: within costs, at the pause before
    them or between two experiments.
    """
    about = {"name": "my.il", "like": "sgemm_naive", "n": 64}
    job = about | {"edit": 1, "text": text, "known_text": NAIVE, "parts": [*PARTS]}
    whole: list[dict] = []
    LocalAnswerer(whole.append).ask(job)
    expected = [each for each in whole if each["type"] != "working"]
    assert [each["progress"] for each in whole if "progress" in each] == soon
    within: Counter[str] = Counter()
    for patience in range(1, 13):
        heard: list[dict] = []
        answerer = Busy(heard.append, patience)
        answerer.ask(job | {"text": f"{job['text']}; {patience}\n"})  # none that was checked
        while answerer.evaluation is not None:
            within.update(each["part"] for each in heard[-1:] if each["type"] == "working")
            answerer.resume()
        assert [each for each in heard if each["type"] != "working"] == expected
    assert Counter(stops) <= within


# -- the file and its history


@pytest.mark.parametrize(
    "content",
    [
        *("", "{}", "[1]", '[{"number": "x"}]', '[{"text": 1}]', "[[]]", "[" * 9_999 + "]" * 9_999),
        f'[{{"number": 1, "text": "", "gflops": 1{"0" * 400}}}]',
        '{"edits": [{"number": 1, "text": "", "n": "2048"}]}',
        '{"edits": [{"number": 1, "text": 1}]}',
        '{"edits": [{"number": 1, "text": [1]}]}',
        '{"edits": [{"number": 1, "text": "", "gflops": Infinity}]}',
        '{"edits": [{"number": 1, "text": "", "is_correct": "no"}]}',
    ],
    ids=range(13),
)
def test_a_history_that_cant_be_read_is_put_aside(tmp_path, content):
    path = tmp_path / ".my.il.history.json"
    path.write_text(content)
    assert len(Edits(path)) == 0
    path.write_text(f"{content} ")
    assert len(Edits(path)) == 0
    aside = [each.read_text() for each in tmp_path.iterdir()]
    assert sorted(aside) == [content, f"{content} "]


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_a_text_written_while_another_is_saved_is_overwritten_and_known_or_news(
    name, tmp_path, monkeypatch
):
    """However long the disk takes: before the old file is replaced, and just after it."""
    path = tmp_path / "my.il"
    path.write_text(NAIVE)
    file = KernelFile(path)
    place = os if name == "fsync" else Path
    real = getattr(place, name)

    def slow(*given):
        done = real(*given)
        path.write_text("theirs")
        return done

    with monkeypatch.context() as patched:
        patched.setattr(place, name, slow)
        file.replace("mine")
    assert file.look() == (name == "replace")
    assert file.edits.find_text("theirs") or file.text == "theirs"
    assert not file.problem


@seeded(20)
def test_what_is_said_of_a_version_is_true(seed):
    """The law: after random edits, also of comments, spaces and empty lines."""
    chance = random.Random(seed)
    before = ck.kernels[chance.choice(sorted(ck.kernels))].text
    after = mistype(before, chance, chance.randrange(3)).split("\n")
    for _ in range(chance.randrange(4)):
        at = chance.randrange(len(after))
        after[at : at + 1] = chance.choice(([after[at] + " ; one"], ["  " + after[at]], ["", ""]))
    old, now = ([*map(bare_line, text)] for text in (before.split("\n"), after))
    words = describe_change(before, "\n".join(after))
    named = re.match(r"line (\d+) is now (.*?)(?:, and (\d+) more lines?)?$", words)
    more = Counter(filter(None, now)) - Counter(old)
    assert bool(named) == bool(more)
    if named:
        assert now[int(named[1]) - 1] == named[2] or named[2].endswith("…"), words
        assert more[now[int(named[1]) - 1]] and int(named[3] or 0) == more.total() - 1
    elif [*filter(None, old)] == [*filter(None, now)]:
        assert words in ("", "only comments or spaces were changed")
    else:
        assert words == "lines were moved or deleted"


# -- ck.workbench


def test_it_begins_a_file_with_a_kernels_text_and_keeps_one_that_is_there(tmp_path):
    path = tmp_path / "my.il"
    first = ck.workbench(path, like="sgemm_naive")
    assert path.read_text() == NAIVE
    assert first.kernel.program == ck.kernels["sgemm_naive"].program
    path.write_text(TEXT)
    second = ck.workbench(str(path), like="sgemm_naive", n=128)
    assert second.kernel.block == (8, 8)
    assert repr(second) == "Workbench: my.il"
    again = ck.workbench(path, like="sgemm_naive")
    assert first.conversation is again.conversation, "of a cell that is run again"


# -- the page's script


def test_the_script_is_below_80_kb_and_names_nothing_twice():
    module = page_files.widget_module()
    assert len(module.encode()) < 80_000
    names = re.findall(r"(?m)^(?:const|let|class|function) (\w+)", module)
    assert sorted(names) == sorted(set(names))
    assert not re.search(r"(?m)^import\b|https?://(?!www\.w3\.org/2000/svg)", module)
