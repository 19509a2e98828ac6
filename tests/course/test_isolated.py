"""Bare processes: plain data there and back, functions taken along, and how an answer may end."""

import base64
import io
import json
import os
import platform
import signal
import subprocess
import sys
import threading
from collections import deque
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from answer_sources import find_function
from answers import of_kinds, read_planted
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import drawn_by_day, from_rows
from waiting import is_alive, wait_for

import cypresskit as ck
from cypresskit import subprocesses
from cypresskit.isolated import Raised, here, plain, runner, seccomp, serving
from cypresskit.isolated.answer import Answer
from cypresskit.isolated.process import ForkServer
from cypresskit.subprocesses import read_message, write_message
from cypresskit.teach.answer_source import AnswerSource

numbers = st.one_of(st.integers(), st.floats(allow_nan=False), st.booleans(), st.none())
texts = st.text(st.characters(exclude_categories=["Cs"]))
#: Texts at the limits of what is shown.
PRINTED = [
    most * text
    for limit, text in ((serving.MAX_LINES, "a\n"), (serving.MAX_CHARACTERS, "a"))
    for most in (limit - 1, limit, limit + 1)
]
values = st.recursive(
    numbers | texts,
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(texts, inner),
    max_leaves=20,
)


@given(values)
def test_plain_data_comes_back_as_it_was(value):
    """In a message that is as large as one may be; a larger one is neither sent nor read."""
    message, stream = {"value": plain.encode(value)}, io.BytesIO()
    write_message(stream, message)
    sent = stream.getvalue()
    with patch.object(subprocesses, "MAX_MESSAGE_BYTES", len(sent) - 4):
        write_message(io.BytesIO(), message)
        again = plain.decode(read_message(io.BytesIO(sent))["value"])
    assert again == value and type(again) is type(value)
    with patch.object(subprocesses, "MAX_MESSAGE_BYTES", len(sent) - 5):
        with pytest.raises(ValueError):
            write_message(io.BytesIO(), message)
        with pytest.raises(ValueError):
            read_message(io.BytesIO(sent))


@given(st.dictionaries(st.tuples(texts), values, min_size=1))
def test_of_a_dict_with_keys_that_no_message_has_they_come_back(value):
    again = plain.decode(plain.encode(value))
    assert (again.type, again) == ("dict", [*value])


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1", "?"])
def test_arrays_come_back_as_they_were(dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)[:, ::-1]
    again = plain.decode(json.loads(json.dumps(plain.encode(array))))
    assert again.dtype == array.dtype and np.array_equal(again, array) and again.flags.writeable


@pytest.mark.parametrize("value", [1, 0.5, "1", None, True])
def test_a_board_comes_back_if_its_numbers_are_numbers(value):
    message = plain.encode(ck.HD5870)
    message["device"][list(vars(ck.HD5870)).index("clock_ghz")] = value
    again = plain.decode(message)
    if type(value) in (int, float):
        assert again == replace(ck.HD5870, clock_ghz=value)
    else:
        assert isinstance(again, plain.Other)


odd = st.recursive(
    numbers | st.text() | st.sampled_from(["tuple", "array", "dict", "items", "other", "f8"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from("tuple list array dict items other device x".split()),
            inner,
            max_size=2,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=100)
@given(odd)
def test_whatever_a_message_holds_it_is_plain_data_or_refused(data):
    try:
        value = plain.decode(json.loads(json.dumps(data)))
    except ValueError:
        return
    plain.encode(value)


@pytest.mark.parametrize("data", [{"tuple": [], "list": []}, {"dict": [[1, 2], [3]]}, {}])
def test_what_encode_never_writes_is_refused(data):
    with pytest.raises(ValueError):
        plain.decode(data)


NESTED = {
    "tuple": (lambda inner: {"tuple": [inner]}, lambda inner: (inner,)),
    "list": (lambda inner: {"list": [inner]}, lambda inner: [inner]),
    "value": (lambda inner: {"dict": [[1], [inner]]}, lambda inner: {1: inner}),
    "items": (lambda inner: {"items": ["deque", [inner]]}, lambda inner: deque([inner])),
}


@pytest.mark.parametrize("kind", NESTED)
def test_messages_and_values_of_any_kind_are_only_so_deep(kind):
    """A value is told no deeper than its message may be."""
    enclose_data, enclose = NESTED[kind]
    data = value = None
    for _ in range(plain.MAX_DEPTH + 6):
        data, value = enclose_data(data), enclose(value)
    with pytest.raises(ValueError, match="too deep"):
        plain.decode(data)
    message = plain.encode(value)
    assert "nested too deep" in str(message)
    plain.decode(message)


@given(st.binary(max_size=60))
def test_bytes_that_are_no_message_are_refused(data):
    size = len(data).to_bytes(4, "big")
    for stream in (data, size + data, size + data[:-1]):
        try:
            message = read_message(io.BytesIO(stream))
        except ValueError:
            continue
        assert message is None or isinstance(message, dict)


def test_a_shape_that_does_not_fit_is_refused():
    zeros = base64.b64encode(bytes(8)).decode()
    for content in (
        *(["<f8", shape, zeros] for shape in ([2], ["1"], [2**70], [1] * 99)),
        ["O", [1], zeros],
        ["<f8", [1], 7],
    ):
        with pytest.raises(ValueError):
            plain.decode({"array": content})


def answer_of(function, **options):
    """A function of this file as an answer, made of its source."""
    source = find_function(function, "answer")
    return Answer(source.needed_cells(), source.name, **options)


def test_lessons_are_never_taken_along():
    with answer_of(lambda: ck.teach.bus.product_seconds(1, 1, 1)) as answer:
        with pytest.raises(Raised, match="isn't available while an answer is judged"):
            answer()


def test_there_is_no_check_in_the_process():
    def found():
        import gc
        import sys

        lessons = [n for n in sys.modules if n.startswith("cypresskit.teach.")]
        checks = [f for f in gc.get_objects() if "check_" in str(getattr(f, "__name__", ""))]
        own = [f for f in checks if "cypresskit" in str(getattr(f, "__module__", ""))]
        return lessons, [str(f) for f in own if "teach" in str(f.__module__)]

    with answer_of(found) as answer:
        assert answer() == ([], [])


def descendants(pid):
    """The processes that a process has started, and those that they have."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found, seen = set(), {pid}
    while seen:
        found |= seen
        seen = {child for child, parent in parents.items() if parent in found} - found
    return found - {pid}


FAMILIES = """
import threading
from cypresskit.isolated.answer import Answer, CallLimits, Cell
from cypresskit.isolated.process import ForkServer
CELL = "import time\\ndef answer():\\n    time.sleep(600)"

def ended(how):
    limits = CallLimits(1 if how == "by the clock" else 600, 800)
    server = ForkServer()
    cell = Cell(CELL, "answer", [1, 2])
    with Answer([cell], "answer", limits=limits, server=server) as answer:
        print("begins", flush=True)
        if how == "with its server":
            threading.Timer(1, server.end).start()
        answer()
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="processes are found in /proc")
@pytest.mark.parametrize("how", ["by the clock", "with its server", "by a signal to its parent"])
def test_no_process_of_a_call_outlives_it(how, tmp_path):
    """Whatever ends the call: its time, its server, or the end of who asked for it."""
    file = tmp_path / "families.py"
    file.write_text(f"{FAMILIES}\n\nended({how!r})\n")
    with subprocess.Popen([sys.executable, file], stdout=subprocess.PIPE) as asking:
        assert asking.stdout and asking.stdout.readline() == b"begins\n"
        wait_for(lambda: len(descendants(asking.pid)) > 1)
        started = descendants(asking.pid)
        if how == "by a signal to its parent":
            asking.kill()
    wait_for(lambda: not any(map(is_alive, started)))


@pytest.mark.skipif(platform.machine() not in seccomp.CALLS, reason="no filter for this processor")
@from_rows
def test_an_answer_starts_no_process(code):
    needs = "import ctypes, os, subprocess\nfrom concurrent.futures import ThreadPoolExecutor"
    source = AnswerSource([needs, f"answer = lambda: {code}"], "answer")
    with Answer(source.needed_cells(), source.name) as answer:
        try:
            assert answer() is True  # the library says -1
        except Raised as raised:
            assert raised.type == "PermissionError"


def test_a_file_of_an_answer_has_a_limit(tmp_path):
    def fills(path):
        with open(path, "wb") as file:
            for _ in range(100):
                file.write(bytes(10**6))

    with answer_of(fills) as answer, pytest.raises(Raised, match="File too large"):
        answer(str(tmp_path / "large"))
    assert (tmp_path / "large").stat().st_size <= runner.MAX_FILE


def test_what_an_answer_writes_appears_nowhere(capfd):
    def writes():
        for stream in (1, 2):
            os.write(stream, b"written")
        return len(os.read(0, 1))

    server = ForkServer()
    with answer_of(writes, server=server) as answer:
        assert answer() == 0
    server.end()
    assert capfd.readouterr() == ("", "")


@given(st.lists(st.text("a\n") | st.sampled_from(PRINTED), max_size=30))
def test_of_what_an_answer_prints_the_first_lines_are_shown(pieces):
    """In how many pieces ever, and up to the last that still fits."""
    shown = []
    stream = serving.FirstLines(shown.append)
    assert all(stream.write(piece) == len(piece) for piece in pieces)
    text, first = "".join(pieces), ""
    while first != text and len(first) < 4_000 and first.count("\n") < 20:
        first = text[: len(first) + 1]
    more = "" if first == text else "...\n" if first.endswith("\n") else "\n...\n"
    assert "".join(shown) == first + more


# -- in the notebook's own process, as in a browser


@drawn_by_day("check", of_kinds("formula", "function"), 6)
def test_verdicts_in_the_notebooks_own_process_are_the_same(check, monkeypatch, capsys):
    """Of functions: a value is judged here anyway. And nothing of the stubs is left behind."""
    row = read_planted()[check]
    given = [row.right[0], *(answer for answer, _ in row.wrong[:5])]
    apart = [str(check(answer)) for answer in given]
    monkeypatch.setattr(here, "IS_USED", True)
    before, modules = (ck.teach, ck.draw, ck.workbench, ck.gemm), {*sys.modules}
    assert [str(check(answer)) for answer in given] == apart
    assert before == (ck.teach, ck.draw, ck.workbench, ck.gemm)
    assert all(name.startswith("cypresskit.") for name in {*sys.modules} ^ modules)


def stopped(*_):
    """An endless answer; the stop button is pressed when it runs, however slow the machine."""
    import os

    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    while True:
        pass


def test_the_stop_button_stops_an_answer_in_the_notebooks_own_process(monkeypatch):
    """And a text, an exit or a request for input are told as ever."""
    monkeypatch.setattr(here, "IS_USED", True)
    ck.teach.start_here.check_peak(lambda *_: 0)  # imports what it needs
    assert "You stopped it while" in str(ck.teach.start_here.check_peak(stopped))
    assert "tries to quit" in str(ck.teach.start_here.check_peak(lambda *_: exit()))
    assert "waits for `input`" in str(ck.teach.start_here.check_peak(lambda *_: input()))
    assert "returns too much" in str(ck.teach.start_here.check_peak(lambda *_: "x" * (1 << 27)))


def in_while(*_):
    while True:
        pass


def in_for(*_):
    from itertools import count

    for _ in count():
        pass


def in_generator(*_):
    from itertools import repeat

    return sum(1 for _ in repeat(0))


def caught(*_):
    left = [0]
    while left:
        try:
            left.append(left.pop())
        except:  # noqa: E722  (as students write it)
            continue


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.11 can't end a loop from outside")
@pytest.mark.parametrize("endless", [in_while, in_for, in_generator, caught])
def test_a_loop_that_does_not_end_is_told_in_the_notebooks_own_process(endless, monkeypatch):
    """However it loops, and whatever it catches; and nothing that watches it is left behind."""
    monkeypatch.setattr(here, "IS_USED", True)
    monkeypatch.setattr("cypresskit.teach.check.SECONDS", 0.3)
    said = str(ck.teach.start_here.check_peak(endless))
    assert "had not ended after 0.3 s" in said
    assert "what ends it?" in said
    monitoring = vars(sys)["monitoring"]
    assert monitoring.get_tool(monitoring.OPTIMIZER_ID) is None


def test_an_earlier_limit_of_memory_is_not_raised():
    """Of a computer whose owner set one."""
    run = (
        "import resource, cypresskit.isolated.runner as r\nall = resource.RLIMIT_AS\n"
        "resource.setrlimit(all, (2**40, 2**40)); r.bound_memory(1e7)\n"
        "assert resource.getrlimit(all) == (2**40, 2**40)\n"
        "r.bound_memory(1e5); assert resource.getrlimit(all)[1] < 2**40"
    )
    subprocess.run([sys.executable, "-c", run], check=True)
