"""Lessons' kernels in CUDA: right in numba's simulator, and a wrong one is called wrong."""

import linecache
import re

import numpy as np
import pytest
from conftest import ROOT

import cypresskit as ck
from cypresskit.teach import in_cuda
from cypresskit.today import figures, record
from tools import book

#: Of each lesson a slip: a piece of its cell, and what stands there instead.
SLIPS = {
    "01": ("b[k, 2 * x + j]", "b[k, 2 * x]"),
    "02": ("block[i, j] += a", "block[i, j] = a"),
    "03": ("a[row, k + 3]", "a[row, k + 2]"),
    "04": ("b[k, x]", "b[k, y]"),
    "05": ("b[k, x]", "b[k, y]"),
    "06": ("low += (high", "low = (high"),
    "07": ("tile[x, y]", "tile[y, x]"),
    "08": ("part, a.shape[1], 4", "0, a.shape[1], 4"),
}


def cuda_cell(number: str) -> str:
    """The cell of a lesson that has its idea in CUDA."""
    (path,) = (ROOT / "notebooks/source").glob(f"{number}_*.md")
    cells = book.read(path).cells
    (cell,) = (cell for cell in cells if book.CUDA in cell.metadata.get("tags", ()))
    return cell.source


@pytest.mark.parametrize("number", [*SLIPS, "13"])
def test_what_a_kernel_names_is_imported_in_its_lesson(number):
    (path,) = (ROOT / "notebooks/source").glob(f"{number}_*.md")
    first = next(c.source for c in book.read(path).cells if c.cell_type == "code")
    assert "import numpy as np" in first and "import cypresskit as ck" in first


def printed(text: str, capsys) -> str:
    """What a cell prints."""
    linecache.cache["<cuda>"] = (len(text), None, text.splitlines(keepends=True), "<cuda>")
    exec(compile(text, "<cuda>", "exec"), {"ck": ck, "np": np, "__name__": "__main__"})
    return capsys.readouterr().out


@pytest.mark.parametrize("number", SLIPS)
def test_a_lessons_kernel_is_right_and_with_a_slip_wrong(number, capsys):
    text = cuda_cell(number)
    said = printed(text, capsys)
    assert "result is right." in said and re.search(r"\d (Gflop/s|ns)", said)
    right, wrong = SLIPS[number]
    assert text.count(right) == 1
    assert "result is wrong." in printed(text.replace(right, wrong), capsys)


@pytest.mark.parametrize("number", SLIPS)
def test_its_code_is_folded(number):
    (path,) = (ROOT / "notebooks/source").glob(f"{number}_*.md")
    cells = book.student(book.read(path)).cells
    (cell,) = (cell for cell in cells if book.CUDA in cell.metadata.get("tags", ()))
    assert cell.metadata["jupyter"] == {"source_hidden": True}


def test_figures_are_the_records():
    a, b = in_cuda.matrices()
    said = in_cuda.compared(lambda a, b: a.T @ b, (a, b), a.T @ b, "block: 8 x 8")
    assert f"with a block of 8 x 8, {figures('block')['8 x 8']:,.0f} Gflop/s" in said
    assert {row["experiment"] for row in record()["rows"]} == set(in_cuda.MEASURED)


def test_an_error_names_its_line():
    def product(a):
        return a[99]

    with pytest.raises(ValueError, match=r"IndexError: .* line \d+: return a\[99\]"):
        in_cuda.simulated(product, np.zeros(3, np.float32))
