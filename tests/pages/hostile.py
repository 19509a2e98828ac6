"""Texts that a reader may have written, or been handed, and every picture that shows such texts."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from players import reports

import cypresskit as ck
from cypresskit import draw
from cypresskit.draw.display import Displayable
from cypresskit.host import Task, run_tasks

TAG = '"><img src=x class=hostile onerror="window.hostile = 1">{}<b class=hostile>'
#: A tag, the end of a script, quotes and marks, half a surrogate, control letters; and very long.
TEXT = (
    TAG
    + "</script><!--<script>window.hostile = 1</script>"
    + '\'"`**[lesson 00](x" onmouseover="window.hostile=1)`**\\\' & $name @words'
    + "J\udcf6rg a\0b\x1b[2J\u202e\ufffe\x85\u2028c"
    + "A" * 100_000
)


def report_called(text):
    """A report on a kernel and a board that are called so."""
    true = reports()[1]
    return replace(true, kernel=text, device=replace(true.device, name=text))


def name_kernel(text):
    """A kernel that is called so."""
    kernel = ck.kernels["sgemm_tn"]
    return replace(kernel, given=replace(kernel.program, name=text))


def recording(text):
    kernel, recorder, ones = name_kernel(text), ck.Recorder(0), np.ones((8, 64), np.float32)
    arguments = kernel.arguments(ones, ones, None, 1, 0)
    ck.launch(kernel.program, **arguments, observers=[recorder])
    return recorder.recording


def timeline(text):
    """A task, its resource and its blocks that are called so."""
    tasks = [Task(text, text, text, {text: 2.0}, {}, {text: text}, 2e6)]
    return run_tasks(tasks, {text: 100.0}, 1e9)


def commented(text):
    """A program with such a name and such a comment."""
    line = " ".join(text.encode("ascii", "ignore").decode().replace("\0", "").split())[:1000]
    lines = ck.kernels["sgemm_naive"].program.lines
    program = ck.assemble("\n".join([*lines[:-1], f"; {line}", lines[-1]]))
    return replace(program, name=text)


def sheet(text):
    """A picture of one's own."""
    made = draw.sheet.Sheet(text)
    made.stage(text, 100, 100)
    made.text(5, 50, text)
    made.boxes(text, [20, 40], 20, 10, 10, color="a", words=[text, text], key=[1, 2])
    made.about = {1: text, 2: [(0, text)]}
    below = [made.legend((text, "a", "box")), draw.theme.html(text)]
    return made.player([text, text], [text], below=below, step=text)


def line_chart(text):
    guess = draw.Prediction(text, [text, "b"], (), 0.0, text)
    lines = {text: {0: 1, 1: 2}}
    return draw.line_chart(lines, text, text, title=text, about=text, guess=guess, kind="counted")


#: Every view of a picture, a toy or a text that comes from a reader. The others take none: numbers
#: and names of the catalog alone.
OF_TEXT: dict[str, Callable[[str], Displayable]] = {
    "register_block": lambda text: draw.register_block(recording(text)),
    "texture_fetch": lambda text: draw.texture_fetch(name_kernel(text)),
    "bundles": lambda text: draw.bundles(ck.compile(commented(text))),
    "compilers": lambda text: draw.compilers(name_kernel(text), 64),
    "wavefronts": lambda text: draw.wavefronts(report_called(text)),
    "chip": lambda text: draw.chip(report_called(text)),
    "timeline": lambda text: draw.timeline(timeline(text), names=(text,)),
    "line_chart": line_chart,
    "a sheet": sheet,
}
#: Views of numbers and of the catalog's kernels; ``explore`` is made of three of the above.
NO_TEXT = "block_race digits explore lds_pitch lds_transpose".split()
NO_TEXT += ["climb", "roofline", "published"]
