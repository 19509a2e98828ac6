"""Gflop/s against N: simulated curves, published points, and the ceiling that the busiest unit
sets.

Curves come from the rows of ``timing.sweep``, published figures from the papers. A ceiling is the
speed if the busiest unit never paused: for each N with the launch, and for the largest N, as a
level line, without it. Left out: curves that were published as pictures only.
"""

from collections.abc import Iterable, Sequence

from cypresskit import published
from cypresskit.devices import DEVICES, HD5870, Device
from cypresskit.draw.chart import Scale, chart
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet, nonempty
from cypresskit.kernels.own import Source
from cypresskit.timing import sweep
from cypresskit.timing.steady import STEADY

KERNELS = ("sgemm_tn", "dgemm_tn", "dgemm_nn")
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
    top = max([*(row["gflops"] for row in table), *(row["gflops_max"] for row in known.values())])
    right = max([*sizes, *(row.get("n_at_max", 0) for row in known.values())])
    ceilings = {name: _ceiling(curve[max(curve)], launch=False) for name, curve in curves.items()}
    high = min(4 * top, max(1.2 * top, *(1.06 * ceiling for _, ceiling in ceilings.values())))
    sheet = Sheet("Performance against N: " + ", ".join(curves))
    names, lines = [], []
    for name, curve in curves.items():
        unit, ceiling = ceilings[name]
        names.append(f"{name}, simulated; {unit} allows {_text(ceiling)}")
        lines.append(
            f"{name}: ceiling {ceiling:.0f}; "
            + ", ".join(
                f"N {n}: {row['gflops']:.0f}{_uncertainty(row)}" for n, row in curve.items()
            )
        )
        if name in known:
            names.append(f"{name}, published {known[name]['gflops_max']}")
            lines.append(
                f"  published {known[name]['gflops_max']} at N ="
                f" {known[name].get('n_at_max', right)}"
            )
    drawn = chart(sheet, 310, Scale("N", 0, 1.05 * right), Scale("Gflop/s", 0, high), names)
    for number, (name, curve) in enumerate(curves.items()):
        at = list(curve)
        for n in (n for n in at if "low" in curve[n]):
            drawn.line([n, n], [curve[n]["low"], curve[n]["high"]], number, 1.5, line_dash="solid")
        if any(curve[n]["launch"] for n in at):
            drawn.line(at, [_ceiling(curve[n])[1] for n in at], number, 1, line_dash="solid")
        drawn.line([0, right], [ceilings[name][1]] * 2, number, 1.5, line_dash="dotted")
        words = [f"N = {n}. {_said(name, curve[n])}".replace("**", "") for n in at]
        drawn.curve(name, at, [curve[n]["gflops"] for n in at], number, words)
        if name in known:
            drawn.point(name, known[name].get("n_at_max", right), known[name]["gflops_max"], number)
    drawn.head(sizes)
    captions = [
        f"N = {n}. " + "\n".join(_said(name, curve.get(n)) for name, curve in curves.items())
        for n in sizes
    ]
    launch = any(row["launch"] for row in table)
    dotted = "if the busiest unit never paused" + ", without the launch" * launch
    key = [(dotted, "ink", "dotted"), *[("thin: the same with it", "ink", "solid")] * launch]
    key += [("upright: what the calibrations leave open", "ink", "solid")] * any(
        "low" in row for row in table
    )
    return sheet.player(captions, lines, below=[sheet.key(*key)], step="N")


def _curves(rows: list[dict]) -> dict[str, dict[int, dict]]:
    """The rows by curve and N (of matrix-vector products, the vector's length). A curve is named by
    kernel, board if there are several, and m and k where they aren't N; rows that still collide go
    into numbered curves.
    """
    curves: dict[str, dict[int, dict]] = {}
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


def _published(curves: dict[str, dict[int, dict]]) -> dict[str, dict]:
    """The papers' figures for square products on the HD 5870, by the name of the curve that they
    belong to.
    """
    rows, chip = published.kernels(), HD5870.name
    here = {
        name
        for name, curve in curves.items()
        if all(row.get("device", chip) == chip for row in curve.values())
    }
    named = {name: rows.get(name.removesuffix(f", {chip}"), {}) for name in curves if name in here}
    return {name: row for name, row in named.items() if "gflops_max" in row}


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
    unit, waits = max(busy, key=busy.__getitem__), row["launch"]
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
    said = f"**{name}**: {_text(row['gflops'])} Gflop/s{_uncertainty(row)}"
    said += f", {_text(row['percent'])} % of peak, bound by {row['bound']}"
    fetched = f"{row['bytes_L1'] / (row['gflops'] * row['seconds'] * 1e9 / 2):.2g}"
    said += (
        f"; {row['registers']} registers, room for {row['active']} wavefronts an engine,"
        f" {row['wavefronts']} in all"
    )
    return (
        f"{said}; {fetched} byte{'s' * (fetched != '1')} fetched for a multiply-add"
        if fetched != "0"
        else said
    )
