"""Packages whose names are imported when they are first used."""

import subprocess
import sys

import pytest

import cypresskit as ck

LOADED = "; import sys; print(*(m for m in ('bokeh', 'cypresskit.draw.chip') if m in sys.modules))"


@pytest.mark.parametrize(
    ("code", "loaded"),
    [
        ("import cypresskit as ck; ck.draw", ""),
        ("import cypresskit as ck; ck.teach.lds.check_place", ""),
        ("import cypresskit as ck; ck.draw.line_chart", "bokeh"),
        ("import cypresskit as ck; ck.draw.climb", ""),
        ("import cypresskit as ck; ck.draw.chip", "bokeh cypresskit.draw.chip"),
    ],
)
def test_only_the_view_that_is_asked_for_is_loaded(code, loaded):
    command = [sys.executable, "-c", code + LOADED]
    assert (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == loaded
    )


@pytest.mark.parametrize("name", ["chip", "climb", "timeline"])
def test_a_module_that_is_imported_first_doesnt_hide_the_view_of_its_name(name):
    code = f"import cypresskit.draw.{ck.draw.VIEWS[name]}; print(callable(cypresskit.draw.{name}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "True"


def test_a_name_that_isnt_there_is_told_with_its_neighbour():
    with pytest.raises(AttributeError, match="Did you mean `check_place`"):
        ck.teach.lds.chek_place  # noqa: B018
    with pytest.raises(AttributeError, match="Did you mean `wavefronts`"):
        ck.draw.wavefront  # noqa: B018
    with pytest.raises(ImportError):
        from cypresskit.draw import roofline  # noqa: F401
