"""Bare processes: plain data there and back, functions taken along, and how an answer may end."""

import base64
import io
import json
import math
import os
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cypresskit as ck
from cypresskit.isolated import Answer, Lost, Raised, call, plain, process
from cypresskit.isolated.process import FORKS, CallLimits, Family

numbers = st.one_of(st.integers(), st.floats(allow_nan=False), st.booleans(), st.none())
texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    numbers | texts | st.fractions(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(texts, inner),
    max_leaves=20,
)


@given(values)
def test_plain_data_comes_back_as_it_was(value):
    stream = io.BytesIO()
    plain.write(stream, {"value": plain.encode(value)})
    stream.seek(0)
    again = plain.decode(plain.read(stream)["value"])
    assert again == value and type(again) is type(value)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1", "?"])
def test_arrays_come_back_as_they_were(dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)[:, ::-1]
    again = plain.decode(json.loads(json.dumps(plain.encode(array))))
    assert again.dtype == array.dtype and np.array_equal(again, array) and again.flags.writeable


odd = st.recursive(
    numbers | st.text() | st.sampled_from(["tuple", "array", "dict", "items", "other", "f8"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from("tuple list array dict items other described fraction x".split()),
            inner,
            max_size=2,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=400)
@given(odd)
def test_whatever_a_message_holds_it_is_plain_data_or_refused(data):
    try:
        value = plain.decode(json.loads(json.dumps(data)))
    except ValueError:
        return
    plain.encode(value)


@given(st.binary(max_size=60))
def test_bytes_that_are_no_message_are_refused(data):
    size = len(data).to_bytes(4, "big")
    for stream in (data, size + data, size + data[:-1]):
        try:
            message = plain.read(io.BytesIO(stream))
        except ValueError:
            continue
        assert message is None or isinstance(message, dict)


def test_a_shape_that_does_not_fit_is_refused():
    zeros = base64.b64encode(bytes(8)).decode()
    for content in (["<f8", [2], zeros], ["O", [1], zeros], ["<f8", [-1], zeros], ["<f8", [1], 7]):
        with pytest.raises(ValueError):
            plain.decode({"array": content})


FACTOR = 3
LOCK = threading.Lock()


class Scale:
    by = FACTOR

    def __call__(self, x):
        return x * self.by


def twice(x):
    return 2 * x if x < 2 else 2 * twice(x - 1)


def test_a_function_takes_along_what_it_uses():
    def outer(x, k=5, *, m=1):
        return Scale()(x) + offset + math.floor(k) + m + np.int64(FACTOR) + twice(1)

    offset = 100
    with Answer(outer) as answer:
        assert answer(1) == 3 + 100 + 5 + 1 + 3 + 2
        assert answer(2, 0) == 6 + 100 + 0 + 1 + 3 + 2
    with Answer(Scale()) as answer:
        assert answer(2) == 6


def test_what_can_not_be_taken_along_is_named():
    with Answer(lambda: LOCK.acquire()) as answer, pytest.raises(Raised) as raised:
        answer()
    assert "LOCK" in str(raised.value) and "a lock can't be handed to it" in str(raised.value)


def test_a_copy_need_not_load_the_fast_engine():
    def loaded():
        return "cypresskit.machine.fast.translate" in sys.modules

    with Answer(loaded) as answer:
        assert answer() == FORKS


def test_lessons_are_never_taken_along():
    with Answer(lambda: ck.teach.bus.product_seconds(1, 1, 1)) as answer:
        with pytest.raises(Raised, match="isn't there while an answer is judged"):
            answer()


def test_there_is_no_check_in_the_process():
    def found():
        import gc
        import sys

        lessons = [n for n in sys.modules if n.startswith("cypresskit.teach.")]
        checks = [f for f in gc.get_objects() if "check_" in str(getattr(f, "__name__", ""))]
        own = [f for f in checks if "cypresskit" in str(getattr(f, "__module__", ""))]
        return lessons, [str(f) for f in own if "teach" in str(f.__module__)]

    with Answer(found) as answer:
        assert answer() == ([], [])


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        (lambda: os._exit(3), "ended"),
        (lambda: bytes(10**11), "memory"),
        (lambda: input(), "input"),
        (lambda: exit(), "exit"),
        (lambda: time.sleep(30), "clock"),
        (lambda: "x" * (1 << 27), "large"),
    ],
)
def test_how_a_call_may_end(work, reason):
    limits = CallLimits(5, 3 if reason == "clock" else 60, 800)
    with pytest.raises(Lost) as lost, Answer(work, limits=limits) as answer:
        answer()
    assert lost.value.reason == reason
    with Answer(lambda: 1) as answer:
        assert answer() == 1, "the next one is served"


def test_where_no_process_is_copied_an_answer_has_the_bare_environment(monkeypatch):
    main = "from cypresskit.isolated import runner\nrunner.FORKS = False\nmain = runner.main\n"
    start = process.BOOT.replace("from cypresskit.isolated.runner import main\n", main)
    assert start != process.BOOT
    monkeypatch.setattr(process, "BOOT", start)
    monkeypatch.setattr(process, "FORKS", False)
    monkeypatch.setenv("SECRET", "of the notebook's")
    names = ["NUMBA_ENABLE_CUDASIM", "OMP_NUM_THREADS", "SECRET"]
    with Answer(lambda: [os.environ.get(name) for name in names]) as answer:
        assert answer() == ["1", "1", None]


def test_a_sandbox_rejects_modules_that_it_would_not_import():
    with pytest.raises(ValueError, match=r"a sandbox begins with no modules.*cypresskit\.marks"):
        Family(sandbox=True, known=([], ""), modules=["cypresskit.marks"])


@pytest.mark.skipif(not FORKS, reason="no processes are copied there")
def test_what_an_answer_leaves_running_ends_with_it(tmp_path):
    def detaches(path):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                while True:
                    time.sleep(0.05)
                    open(path, "a").write("x")
            os._exit(0)
        time.sleep(0.3)

    target = tmp_path / "alive"
    with Answer(detaches) as answer:
        answer(str(target))
    size = target.stat().st_size
    time.sleep(0.3)
    assert size and target.stat().st_size == size


def test_a_function_of_the_package_runs_in_its_own_process():
    limits = CallLimits(20, 60, 1_000)
    family = Family()
    assert call("math", "hypot", 3, 4, limits=limits, family=family) == 5.0
    with pytest.raises(Raised, match="ValueError"):
        call("math", "sqrt", -1, limits=limits, family=family)
    family.end()


def test_a_call_leaves_no_thread_behind(monkeypatch):
    """A process that judges others is itself refused if it leaves a thread."""

    class Slow(threading.Timer):
        def run(self):
            super().run()
            time.sleep(0.3)

    monkeypatch.setattr(threading, "Timer", Slow)
    before = threading.enumerate()
    with Answer(lambda: 1) as answer:
        assert answer() == 1
        assert threading.enumerate() == before


def test_a_busy_machine_of_threads_never_hangs_a_check():
    """Answers are judged beside threads that compile kernels: nothing is forked here."""
    stop = threading.Event()

    def compiles():
        number = 0
        while not stop.is_set():
            number += 1
            text = ck.kernels["sgemm_naive"].text + f"; {number} {threading.get_ident()}"
            ck.compile(ck.assemble(text, "x.il"))

    threads = [threading.Thread(target=compiles) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for number in range(8):
            with Answer(lambda x: x + 1) as answer:
                assert answer(number) == number + 1
    finally:
        stop.set()
        for thread in threads:
            thread.join()
