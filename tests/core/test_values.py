"""What a notebook shows: values, short and with nothing of a name taken for HTML, and the names of
`ck`.
"""

import builtins
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import cypresskit as ck
from cypresskit.tables import table

EVIL = "<img src=x onerror=alert(1)>"
KERNEL = ck.kernels["sgemm_tn"]


@cache
def report():
    return ck.simulate(KERNEL, 64)


@pytest.mark.parametrize(
    ("make", "start", "whole"),
    [
        (lambda: KERNEL.program, "<Program sgemm_tn.il: pixel mode, 153 instructions>", "details"),
        (
            lambda: ck.compile(KERNEL),
            "<Code of sgemm_tn.il for the HD 5870: 25 registers, ",
            "details",
        ),
        (lambda: ck.compile(KERNEL).stats(), "KernelStats(name=", "table"),
        (lambda: ck.kernels, "sgemm_tn ", "table"),
        (
            lambda: ck.HD5870,
            "<Device HD 5870: 20 SIMD engines at 0.85 GHz, 2,720 Gflop/s in single precision, ",
            "table",
        ),
        (report, "sgemm_tn 64 x 64 x 64 on HD 5870: ", "table"),
    ],
)
def test_a_value_is_a_few_lines_of_text_and_a_table_or_a_fold(make, start, whole):
    value = make()
    assert repr(value).startswith(start)
    assert value is ck.kernels or len(repr(value)) < 800
    assert "np.float64" not in repr(value) and "object at 0x" not in repr(value)
    html = value._repr_html_()
    assert re.findall(r"^<(table|details)>.*</\1>$", html, re.DOTALL) == [whole]


def test_a_report_is_the_same_in_text_and_in_html():
    assert re.sub("<[^>]+>", " ", report()._repr_html_()).split() == str(report()).split()


def test_names_are_no_html():
    shown = [replace(ck.HD5870, name=EVIL)._repr_html_()]
    shown.append(replace(report(), kernel=EVIL)._repr_html_())
    shown.append(replace(KERNEL.program, name=EVIL)._repr_html_())
    shown.append(table([EVIL], [[EVIL]], EVIL))
    assert all("&lt;img" in html and "<img" not in html for html in shown)


def test_a_star_import_hides_nothing_of_pythons():
    names = {}
    exec("from cypresskit import *", names)
    del names["__builtins__"]
    assert {"gemm", "simulate"} <= names.keys() and not names.keys() & vars(builtins).keys()


def test_the_numbers_of_a_report_are_pythons():
    made = report()
    numbers = [*vars(made).values(), made.gflops, made.percent, made.seconds]
    for of_parts in (made.busy, made.hits, made.bytes):
        numbers += of_parts.values()
    assert not [number for number in numbers if isinstance(number, np.generic)]
