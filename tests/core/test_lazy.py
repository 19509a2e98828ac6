"""Packages whose names are imported when they are first used."""

from new_python import printed_by

import cypresskit as ck

#: What a new Python imports, step by step, and which of two modules it has then.
STEPS = {
    "import cypresskit as ck; ck.draw; ck.teach": "",
    "ck.teach.lds.check_place": "",
    "ck.draw.climb": "",
    "ck.draw.line_chart": "",
    "ck.draw.chip": "bokeh cypresskit.draw.chip",
}
LOADED = "import sys; print(*(m for m in ('bokeh', 'cypresskit.draw.chip') if m in sys.modules))"


def test_only_the_view_that_is_asked_for_is_loaded():
    shown = printed_by("\n".join(f"{step}; {LOADED}" for step in STEPS))
    assert shown.splitlines() == [*STEPS.values()]


def test_a_module_that_is_imported_first_doesnt_hide_the_view_of_its_name():
    names = ("chip", "climb", "timeline")
    modules = "; ".join(f"import cypresskit.draw.{ck.draw.VIEWS[name]}" for name in names)
    views = ", ".join(f"callable(cypresskit.draw.{name})" for name in names)
    assert printed_by(f"{modules}; print({views})") == "True True True\n"
