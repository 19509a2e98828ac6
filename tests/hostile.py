"""Texts that a reader may have written, or been handed, and what views show of them."""

from dataclasses import replace

import cypresskit as ck
from cypresskit import draw
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


def report_called(text, true):
    """A report on a kernel and a board that are called so."""
    return replace(true, kernel=text, device=replace(true.device, name=text))


def name_kernel(text, name):
    """A kernel of the catalog that is called so."""
    kernel = ck.kernels[name]
    return replace(kernel, given=replace(kernel.program, name=text))


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
