"""Programs that are no product on the workbench: their own launch, and what should come out."""

import base64
import json
import re

import numpy as np
import pytest

import cypresskit as ck
from cypresskit.editing import launched_answers
from cypresskit.editing.answering import JobMemory, answer_job
from cypresskit.editing.given_launch import given_launch, load_launch, save_launch
from cypresskit.kernels.verification import product

TWICE = """il_ps_2_0
dcl_input_interp(linear) v0.xy__
dcl_output_generic o0
dcl_resource_id(0)_type(2d,unnorm)_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)
sample_resource(0)_sampler(0) r1, v0.xy00
add r2, r1, r1
mov o0, r2
end
"""
X = np.arange(16 * 24, dtype=np.float32).reshape(24, 16)
ARRAYS = {"domain": (16, 24), "inputs": {0: X}, "outputs": {0: np.zeros_like(X)}}


def answers(bench, text, parts=("text", "code", "verdict", "clocks", "replay")):
    """What the process says of a text, by part."""
    said = []
    job = {"edit": "1", "text": text, "name": "my.il", "parts": list(parts)} | bench._settings
    answer_job(job, JobMemory(), said.append, lambda _: False)
    json.dumps(said, allow_nan=False)
    assert said[-1]["type"] == "done"
    assert not [message for message in said if message["type"] == "trouble"]
    return {m["part"]: m for m in said if m["type"] == "answer"}


@pytest.fixture
def bench(tmp_path):
    (tmp_path / "twice.il").write_text(TWICE)
    made = ck.workbench(tmp_path / "twice.il", arrays=ARRAYS, expected=2 * X)
    yield made
    made._conversation.close()


def test_a_right_program_is_right_and_timed_as_by_simulate(bench):
    found = answers(bench, TWICE)
    assert list(found) == ["text", "code", "verdict", "clocks"]
    assert found["verdict"]["right"]
    assert found["verdict"]["message"] == "The result is right, all 384 elements."
    shape = ck.Shape(bench.program, (16, 24), {0: X}, outputs=ARRAYS["outputs"])
    report = ck.simulate(bench.program, launch=shape, flops=X.size)
    assert found["clocks"]["clocks"] == round(report.clocks)
    assert found["clocks"]["gflops"] == float(f"{report.gflops:.4g}") > 0
    assert found["clocks"]["at"] == "16 x 24 work-items"
    assert bench.report.clocks == report.clocks
    assert not ARRAYS["outputs"][0].any()


def test_zeros_from_outside_are_no_fault_where_the_result_is_right(tmp_path):
    """A filter whose edge is meant to be zero; the findings are listed all the same."""
    shift = TWICE.replace("_sampler(0) r1", "_sampler(0)_aoffimmi(1,0,0) r1")
    expected = np.zeros_like(X)
    expected[:, :-1] = 2 * X[:, 1:]
    (tmp_path / "shift.il").write_text(shift)
    bench = ck.workbench(tmp_path / "shift.il", arrays=ARRAYS, expected=expected)
    verdict = answers(bench, shift)["verdict"]
    assert verdict["right"]
    assert [row["kind"] for row in verdict["findings"]] == ["fetch outside"]
    assert "16 x 24 work-items" in verdict["launched"]
    wrong = answers(bench, shift.replace("add r2, r1, r1", "mul r2, r1, r1"))["verdict"]
    assert not wrong["right"]
    assert wrong["message"].startswith("The result is wrong")
    bench._conversation.close()


def test_a_wrong_program_has_its_first_wrong_element_and_the_line_that_stored_it(bench):
    found = answers(bench, TWICE.replace("add r2, r1, r1", "mul r2, r1, r1"))["verdict"]
    wrong = X * X != 2 * X
    row, column = np.argwhere(wrong)[0]
    assert found["message"] == f"The result is wrong: o0[{row}, {column}] is 1 in place of 2."
    assert found["findings"][0]["line"] == TWICE.split("\n").index("mov o0, r2") + 1
    drawn = found["product"]
    bits = np.unpackbits(np.frombuffer(base64.b64decode(drawn["wrong"]), "u1"), count=X.size)
    assert np.array_equal(bits.reshape(X.shape).astype(bool), wrong)
    assert (drawn["row"], drawn["column"], drawn["count"]) == (row, column, wrong.sum())


def test_lines_have_prices_and_the_code_a_best(bench):
    found = answers(bench, TWICE, ("best", "prices"))
    assert found["best"]["bundles"] == 1
    lines = {row["line"] for row in found["prices"]["lines"]}
    assert lines == {each.line for each in bench.prices.lines}
    assert found["prices"]["dearest"] == bench.prices.lines[0].line


def test_a_text_that_needs_what_isnt_given_says_so(bench):
    found = answers(bench, TWICE.replace("(0)_sampler", "(1)_sampler").replace("id(0)", "id(1)"))
    assert found["verdict"]["message"] == "It can't be launched."
    assert "inputs={1: array}" in found["verdict"]["findings"][0]["message"]
    assert "inputs={1: array}" in found["clocks"]["problem"]


def test_an_endless_loop_ends_and_a_large_launch_is_compared_only(bench, monkeypatch):
    loop = "whileloop\nbreak_logicalnz l0.x\nadd r2, r1, r1\nendloop"
    endless = TWICE.replace("add r2, r1, r1", f"dcl_literal l0, 0, 0, 0, 0\nmov r2, r1\n{loop}")
    found = answers(bench, endless)["verdict"]
    assert [finding["kind"] for finding in found["findings"]] == ["endless loop"]
    monkeypatch.setattr(launched_answers, "CHECKED", 100)
    found = answers(bench, TWICE)["verdict"]
    assert found["right"] and "races and bounds" in found["message"]
    found = answers(bench, TWICE.replace("add r2, r1, r1", "mov r2, r1"))["verdict"]
    assert not found["right"] and found["message"].startswith("The result is wrong: o0[0, 1]")
    assert found["findings"][0]["kind"] == "answer"


PRODUCTS = (
    "sgemm_tn",
    "sgemm_naive",
    "dgemm_tn",
    "sgemm_tn_stream",
    "sgemm_64x64_lds",
    "sgemm_nn_buffer",
)


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_kernels_own_launch_has_the_kernels_verdict_and_clocks(name, tmp_path):
    """Of each way to launch: a launch that is given says what the product's own does."""
    kernel = ck.kernels[name]
    rows, columns = kernel.multiple
    size = rows, 2 * columns, 2 * kernel.k_step
    arguments = product(kernel, size).arguments(kernel)
    after = {key: kernel_copy(value) for key, value in arguments.items()}
    ck.launch(kernel.program, **after)
    result = after.get("global_memory")
    expected = result if result is not None else after["outputs"][min(after["outputs"])]
    bench = ck.workbench(tmp_path / "my.il", like=name, arrays=arguments, expected=expected)
    found = answers(bench, kernel.text)
    assert found["verdict"]["right"], found["verdict"]
    domain, given = arguments["domain"], [arguments.get(n, {}) for n in ("inputs", "constants")]
    shape = ck.Shape(kernel.program, domain, *given, arguments.get("outputs", {}))
    report = ck.simulate(kernel.program, launch=shape, precision=kernel.precision)
    assert found["clocks"]["clocks"] == round(report.clocks)

    changed = expected.copy()
    changed.flat[changed.size - 1] += 1
    bench._conversation.close()
    bench = ck.workbench(tmp_path / "my.il", arrays=arguments, expected=changed)
    found = answers(bench, kernel.text)["verdict"]
    place = ", ".join(map(str, np.subtract(changed.shape, 1)))
    assert not found["right"] and f"[{place}]" in found["message"]
    bench._conversation.close()


def kernel_copy(value):
    if isinstance(value, dict):
        return {key: kernel_copy(each) for key, each in value.items()}
    return value.copy() if isinstance(value, np.ndarray) else value


def test_a_launch_is_kept_whole_and_the_same_one_in_the_same_file():
    x = np.arange(8, dtype=np.uint32).reshape(2, 4)
    arrays = {
        "domain": 64,
        "inputs": {3: X},
        "constants": {0: [512.0, 1.0], 1: np.arange(4, dtype=np.int32)},
        "global_memory": x,
    }
    given = given_launch(arrays, x + 1, tolerance=0.5, flops=12)
    path = save_launch(given)
    kept = load_launch(path)
    assert (kept.domain, kept.flops, kept.name) == ((64,), 12.0, "g")
    for name in ("inputs", "constants", "outputs"):
        ours, theirs = getattr(given, name), getattr(kept, name)
        assert ours.keys() == theirs.keys()
        assert all(np.array_equal(ours[n], theirs[n]) for n in ours)
    assert np.array_equal(kept.expected, x + 1) and kept.tolerance == 0.5
    assert np.array_equal(kept.global_memory, x)
    assert save_launch(given_launch(arrays, x + 1, tolerance=0.5, flops=12)) == path
    assert save_launch(given_launch(arrays, x + 2, tolerance=0.5, flops=12)) != path


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"arrays": X, "expected": X}, TypeError, "dict of the arguments of ck.launch"),
        ({"arrays": {**ARRAYS, "input": {0: X}}, "expected": X}, ValueError, "`inputs`?"),
        ({"arrays": {"outputs": {0: X}}, "expected": X}, ValueError, "no domain"),
        ({"arrays": ARRAYS | {"domain": (0, 4)}, "expected": X}, ValueError, "each at least 1"),
        ({"arrays": ARRAYS | {"domain": "64"}, "expected": X}, ValueError, "(width, height)"),
        ({"arrays": ARRAYS | {"inputs": X}, "expected": X}, TypeError, "inputs"),
        ({"arrays": ARRAYS | {"inputs": {0: [1, 2]}}, "expected": X}, TypeError, "inputs[0]"),
        ({"arrays": ARRAYS | {"constants": {0: "x"}}, "expected": X}, TypeError, "constants[0]"),
        ({"arrays": ARRAYS | {"outputs": {}}, "expected": X}, ValueError, "without a result"),
        ({"arrays": ARRAYS}, ValueError, "say what should come out"),
        ({"arrays": ARRAYS, "expected": [1.0]}, TypeError, "expected is a numpy array"),
        ({"arrays": ARRAYS, "expected": X[:3]}, ValueError, "has shape (3, 16)"),
        ({"arrays": ARRAYS, "expected": X.astype(float)}, ValueError, "astype(np.float32)"),
        ({"arrays": ARRAYS, "expected": X, "tolerance": -1}, ValueError, "at least 0"),
        ({"arrays": ARRAYS, "expected": X, "flops": "many"}, ValueError, "flops"),
        ({"arrays": ARRAYS, "expected": X, "block": (8, 8)}, ValueError, "block is of a matrix"),
        ({"arrays": ARRAYS, "expected": X, "n": 64}, ValueError, "n is of a matrix product"),
        ({"expected": X}, ValueError, "expected goes with arrays="),
    ],
)
def test_what_is_no_launch_is_named(tmp_path, options, error, words):
    (tmp_path / "twice.il").write_text(TWICE)
    with pytest.raises(error, match=re.escape(words)):
        ck.workbench(tmp_path / "twice.il", **options)


def test_a_page_hears_which_parts_can_come(bench):
    said = []
    bench._conversation.hear({"type": "hello"}, said.append)
    assert said[0]["parts"] == ["text", "code", "verdict", "clocks", "best", "prices"]


def test_the_still_and_the_kernel_of_a_program_that_is_no_product(bench):
    still = bench._first_answers()
    assert still["verdict"]["right"]
    with pytest.raises(ValueError, match="no kernel of a matrix product"):
        print(bench.kernel)
    assert "1 bundle in the loop, 1 register, 25 wavefronts" in repr(bench)
