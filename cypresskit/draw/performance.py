"""Gflop/s against N: simulated curves, published points, and the ceiling that the busiest unit
sets.

Curves come from the rows of ``timing.sweep``, published figures from the papers. A ceiling is the
speed if the busiest unit never paused: for each N with the launch, and for the largest N, as a
level line, without it. Left out: curves that were published as pictures only.
"""

from collections.abc import Iterable, Iterator, Sequence

from cypresskit import published
from cypresskit.devices import DEVICES, HD5870, Device
from cypresskit.draw.chart import Chart, Scale
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet, nonempty
from cypresskit.kernels.own import Source
from cypresskit.timing import sweep
from cypresskit.timing.steady import STEADY

KERNELS = ("sgemm_tn", "dgemm_tn", "dgemm_nn")
Curves = dict[str, dict[int, dict]]  # by name and N, rows of a sweep
Ceilings = dict[str, tuple[str, float]]  # by name, the busiest unit and what it allows
SIZES = (128, 256, 384, 512, 768, 1024, 1536, 2048)


def performance(
    rows: Iterable[dict] | Sequence[Source] = KERNELS,
    sizes: Sequence[int] = SIZES,
    device: Device = HD5870,
) -> Player:
    """A player of Gflop/s over N, with a frame for each N. ``rows`` come from ``sweep`` (with
    ``ranges=True`` each point gets a bar for what the calibrations leave open), on ``device`` or
    boards of the package; kernels are first swept over ``sizes``, a second or so each.
    Raises ``ValueError`` for other rows, and for none.
    """
    what = "pass rows of timing.sweep, kernels or names of kernels"
    given = nonempty(rows, what)
    if all(isinstance(row, Source) for row in given):
        given = list(sweep(given, sizes, device, progress=False))
    if not all(map(_is_row, given)):
        raise ValueError(f"not all of these are rows of a sweep: {what}")
    devices = {known.name: known for known in (*DEVICES.values(), device)}
    table = [row | {"launch": _launch(row, devices)} for row in given]
    curves = _curves(table)
    sizes = sorted(set().union(*curves.values()))
    known = _published(curves)
    ceilings = {name: _ceiling(curve[max(curve)], launch=False) for name, curve in curves.items()}
    sheet = Sheet("Performance against N: " + ", ".join(curves))

    speeds = [row["gflops"] for row in table] + [row["gflops_max"] for row in known.values()]
    top = max(speeds)
    highest = max(1.2 * top, *(1.06 * ceiling for _, ceiling in ceilings.values()))
    right = max([*sizes, *(row.get("n_at_max", 0) for row in known.values())])
    across = Scale("N", 0, 1.05 * right)
    up = Scale("Gflop/s", 0, min(4 * top, highest))
    names = _names(curves, ceilings, known)
    chart = Chart(sheet, across, up, label=sheet.title, height=350, legend=names)

    for number, (name, curve) in enumerate(curves.items()):
        _draw_curve(chart, number, name, curve)
        chart.line([0, right], [ceilings[name][1]] * 2, number, 1.5, line_dash="dotted")
        if name in known:
            best = known[name]
            chart.point(best.get("n_at_max", right), best["gflops_max"], number)
    chart.head(sizes)

    captions = [
        f"N = {n}. " + "\n".join(_said(name, curve.get(n)) for name, curve in curves.items())
        for n in sizes
    ]
    lines = _lines(curves, ceilings, known, right)
    return sheet.player(captions, lines, below=[_key(sheet, table)], step="N")


def _names(curves: Curves, ceilings: Ceilings, known: dict[str, dict]) -> list[str]:
    """The words of the legend: for each curve, and for its published point."""
    names = []
    for name in curves:
        unit, ceiling = ceilings[name]
        names.append(f"{name}, simulated; {unit} allows {_text(ceiling)}")
        if name in known:
            names.append(f"{name}, published {known[name]['gflops_max']}")
    return names


def _lines(curves: Curves, ceilings: Ceilings, known: dict[str, dict], right: int) -> Iterator[str]:
    """The curves as text."""
    for name, curve in curves.items():
        points = [f"N {n}: {row['gflops']:.0f}{_uncertainty(row)}" for n, row in curve.items()]
        yield f"{name}: ceiling {ceilings[name][1]:.0f}; {', '.join(points)}"
        if name in known:
            best = known[name]
            yield f"  published {best['gflops_max']} at N = {best.get('n_at_max', right)}"


def _key(sheet: Sheet, table: list[dict]) -> str:
    """What the lines without points are."""
    has_launch = any(row["launch"] for row in table)
    dotted = "if the busiest unit never paused"
    entries = [(f"{dotted}, without the launch" if has_launch else dotted, "ink", "dotted")]
    if has_launch:
        entries.append(("thin: the same with it", "ink", "solid"))
    if any("low" in row for row in table):
        entries.append(("upright: what the calibrations leave open", "ink", "solid"))
    return sheet.legend(*entries)


def _draw_curve(chart: Chart, number: int, name: str, curve: dict[int, dict]) -> None:
    """Draw a kernel's points, what the calibrations leave open about each, and its ceilings."""
    sizes = list(curve)
    for n in sizes:
        if "low" in curve[n]:
            ends = [curve[n]["low"], curve[n]["high"]]
            chart.line([n, n], ends, number, 1.5, line_dash="solid")
    if any(curve[n]["launch"] for n in sizes):
        ceilings = [_ceiling(curve[n])[1] for n in sizes]
        chart.line(sizes, ceilings, number, 1, line_dash="solid")
    words = [f"N = {n}. {_said(name, curve[n])}".replace("**", "") for n in sizes]
    chart.curve(name, sizes, [curve[n]["gflops"] for n in sizes], number, words)


def _curves(rows: list[dict]) -> Curves:
    """The rows by curve and N (of matrix-vector products, the vector's length). A curve is named by
    kernel, board if there are several, and m and k where they aren't N; rows that still collide go
    into numbered curves.
    """
    curves: Curves = {}
    several = len({row.get("device") for row in rows}) > 1
    for row in rows:
        n = row["n"] if row["n"] > 1 else row.get("m", 1)
        sides = [f"{side} = {row[side]}" for side in "mk" if row.get(side, n) != n]
        name = ", ".join([row["kernel"], *([row.get("device", "")] if several else []), *sides])
        called, number = name, 1
        while curves.get(called, {}).get(n, row) != row:
            called, number = f"{name} ({number + 1})", number + 1
        curves.setdefault(called, {})[n] = row
    return {name: dict(sorted(curve.items())) for name, curve in curves.items()}


def _published(curves: Curves) -> dict[str, dict]:
    """The papers' figures for square products on the HD 5870, by the name of the curve that they
    belong to.
    """
    rows = published.kernels()
    chip = HD5870.name
    known = {}
    for name, curve in curves.items():
        row = rows.get(name.removesuffix(f", {chip}"), {})
        is_on_chip = all(point.get("device", chip) == chip for point in curve.values())
        if is_on_chip and "gflops_max" in row:
            known[name] = row
    return known


def _is_row(row) -> bool:
    needs = {"kernel", "n", "gflops", "bound", "registers", "seconds"}
    return (
        isinstance(row, dict)
        and needs <= row.keys()
        and any(name.startswith("busy_") for name in row)
    )


def _launch(row: dict, devices: dict[str, Device]) -> float:
    """Seconds that the launch takes before the chip begins; 0 for an unknown board."""
    device = devices.get(row.get("device", ""))
    return max(row["seconds"] - row["clocks"] / (device.clock_ghz * 1e9), 0.0) if device else 0.0


def _ceiling(row: dict, launch: bool = True) -> tuple[str, float]:
    """The busiest unit, and the Gflop/s if it never paused, with the time of the launch or
    without.
    """
    busy = {
        key.removeprefix("busy_"): value for key, value in row.items() if key.startswith("busy_")
    }
    busy.pop("DRAM rows", None)  # that is waiting
    unit = max(busy, key=busy.__getitem__)
    waits = row["launch"]
    runs = row["seconds"] - waits
    return unit, row["gflops"] * (waits + runs) / (busy[unit] * runs + waits * launch)


def _text(number: float) -> str:
    return f"{number:.1f}" if number < 9.95 else f"{number:.0f}"


def _uncertainty(row: dict) -> str:
    """By how much a launch that wasn't steady may be off."""
    error = float(row.get("error", 0))
    return f" ± {100 * error:.0f} %" if error > STEADY else ""


def _said(name: str, row: dict | None) -> str:
    if row is None:
        return f"**{name}** has no point here"
    sentence = f"**{name}**: {_text(row['gflops'])} Gflop/s{_uncertainty(row)}"
    sentence += f", {_text(row['percent'])} % of peak, bound by {row['bound']}"
    fetched = f"{row['bytes_L1'] / (row['gflops'] * row['seconds'] * 1e9 / 2):.2g}"
    sentence += (
        f"; {row['registers']} registers, room for {row['active']} wavefronts an engine,"
        f" {row['wavefronts']} in all"
    )
    if fetched == "0":
        return sentence
    return (
        f"{sentence}; {fetched} {'byte' if fetched == '1' else 'bytes'} fetched for a multiply-add"
    )
