"""Lesson 13's charts: Cypress and a current GPU, each in percent of its peak."""

from collections.abc import Mapping
from typing import Any

from cypresskit.devices import HD5870
from cypresskit.draw.chart import Chart, Kind, number_text
from cypresskit.draw.line_chart import line_chart
from cypresskit.teach.l13_what_is_left.checks import peak_gflops
from cypresskit.today import figures, record


def peak_chart(
    experiment: str,
    cypress: Mapping[Any, float],
    x: str,
    size: str,
    title: str,
    compared: tuple[int, int],
) -> Chart:
    """Draw Cypress's speeds and those of an experiment, in percent of each chip's peak, by the
    number that a case begins with, which is named ``x``. ``size`` is that of Cypress's products,
    ``title`` what the chart shows: in it, ``{}`` stands for each of the numbers at the two
    ``compared`` cases, first Cypress's.
    """
    parts = {
        HD5870.name: (cypress, HD5870.single_gflops),
        record()["device"]: (figures(experiment), peak_gflops()),
    }
    kinds: dict[str, Kind] = dict(zip(parts, ("modeled", "measured")))
    lines: dict[str, dict[float, float]] = {
        name: {int(str(case).split()[0]): 100 * speed / of for case, speed in speeds.items()}
        for name, (speeds, of) in parts.items()
    }
    old, new = lines
    about = f"Single precision. {old}: {size}. {new}: N = {record()['n']:,}."
    notes: dict[tuple[str, float], str] = {
        (name, case): "%" for name, line in lines.items() for case in compared if case in line
    }
    finding = title.format(*(number_text(lines[name][case]) for name, case in notes))
    return line_chart(
        lines, x, "% of the peak", kind=kinds, about=about, log="xy", title=finding, notes=notes
    )
