"""Lesson 05: the checks of its exercises on quads, cache lines and what a texture unit makes of them."""

from collections.abc import Callable

import numpy as np

from cypresskit.devices import HD5870
from cypresskit.il import ILError, assemble
from cypresskit.machine import KernelError, launch
from cypresskit.machine.traffic import Traffic
from cypresskit.teach.verdict import Verdict, said, stopped


def check_lines(lines: Callable) -> Verdict:
    """Exercise 1: ``lines(texels, width)`` counts the 64-byte lines that four texels (x, y) of 16 bytes lie in, in a
    texture of ``width`` texels whose rows follow each other in memory."""
    square, row = [(0, 0), (2, 0), (0, 1), (2, 1)], [(0, 5), (2, 5), (4, 5), (6, 5)]
    cases = [
        ([(1, 2)] * 4, 16),
        ([(0, 0), (1, 0), (2, 0), (3, 0)], 16),
        (row, 16),
        (square, 16),
        ([(4, 7), (4, 8)] * 2, 32),
    ]
    cases += [([(0, 0), (4, 1), (8, 2), (12, 3)], 16), ([(8, 0), (9, 0), (0, 1), (1, 1)], 10)]
    for texels, width in cases:
        want = len({(y * width + x) // 4 for x, y in texels})
        case = f"lines({texels}, {width})"
        try:
            got = lines(list(texels), width)
            right = bool(got == want)
        except Exception as error:
            return stopped("lines", error, f"{case} should give a number from 1 to 4.")
        if right:
            continue
        hint = "number the texels row after row, as they lie in memory: which number has (x, y)? Which line?"
        if got == len(set(texels)):
            hint = "these are the texels that differ; four neighbours in a row share a line."
        elif width % 4 and got == len({(x // 4, y) for x, y in texels}):
            hint = (
                f"with {width} texels a row, a line may end in the next row. Number the texels through, row after row."
            )
        elif got == len({x // 4 for x, _ in texels}):
            hint = "texels with the same x in two rows don't lie in one line: the row counts too."
        elif got == len({y for _, y in texels}):
            hint = "this counts rows; a row has many lines."
        return Verdict(False, f"{case} gives {got}; these texels lie in {want} line{'s' * (want > 1)}.", hint)
    return Verdict(True, "Seven quads counted right, even the one whose line runs over the end of a row.")


def check_numbering(text: object) -> Verdict:
    """Exercise 2: IL of a compute shader whose 64 work-items multiply 8 texels of A with 8 of B, numbered so that no
    quad touches more than one line of either."""
    if not isinstance(text, str):
        return Verdict(False, f"The kernel is a {type(text).__name__}, not text.", "pass the IL between quotes.")
    try:
        program = assemble(text, "numbering.il")
    except ILError as error:
        return Verdict(False, f"The kernel does not assemble.\n{error}", "the line above the caret.")
    rng = np.random.default_rng(64)
    a, b = (rng.integers(1, 9, (1, 16, 4)).astype(np.float32) for _ in "ab")
    c, traffic = np.zeros((8, 8, 4), np.float32), Traffic()
    try:
        launch(
            program,
            64,
            inputs={0: a, 1: b},
            global_memory=c.reshape(8, 32),
            observers=[traffic],
            max_instructions=10**5,
        )
    except (KernelError, ValueError) as error:
        return Verdict(False, f"The kernel does not run: {said(error)}", "the row and the column go from 0 to 7.")
    right = a[0, ::2, :1][:, np.newaxis] * b[0, ::2][np.newaxis]
    wrong = np.argwhere((c != right).any(axis=2))
    if len(wrong):
        row, column = (int(place) for place in wrong[0])
        what = "is not computed at all" if not c[row, column].any() else "is wrong"
        return Verdict(
            False,
            f"Element ({row}, {column}) of the tile {what}, and {len(wrong)} of 64 in all.",
            "each of the 64 numbers must lead to another (row, column): which bits of the number have you used twice?",
        )
    touched = {"A": 0, "B": 0}
    for access in traffic.accesses:
        if access.kind == "fetch" and access.x is not None:
            quads = np.sort((access.x // 4).reshape(16, 4), axis=1)
            touched["AB"[access.resource]] += int((1 + (np.diff(quads) != 0).sum(axis=1)).sum())
    finding = f"C is right; A costs {touched['A']} clocks of the texture unit and B {touched['B']}"
    if max(touched.values()) > 16:
        hint = "a quad is four numbers in a row, 4q to 4q + 3. For a square, which bit of the number moves down a row?"
        return Verdict(False, f"{finding}. Sixteen are enough for each.", hint)
    return Verdict(True, f"{finding}: one line for each of 16 quads, as in a pixel shader.")


def check_ceiling(ceiling: Callable) -> Verdict:
    """Exercise 3: ``ceiling(flops, bundles, clocks)`` is what the HD 5870 can do at most, in Gflop/s, with a loop of so
    many flops of a work-item, bundles, and clocks of the texture unit for a wavefront."""
    rate = HD5870.wavefront * HD5870.simd_engines * HD5870.clock_ghz
    cases = {"SGEMM TN": (256, 31, 128), "DDGEMM": (8, 89, 64), "DGEMM TN": (128, 68, 256)}
    cases |= {"DGEMM NN": (128, 68, 384), "Ashraf's": (512, 75, 320)}
    found = []
    for name, (flops, bundles, clocks) in cases.items():
        alu = HD5870.bundle_clocks * bundles
        want, case = flops * rate / max(alu, clocks), f"ceiling({flops}, {bundles}, {clocks})"
        try:
            got = float(ceiling(flops, bundles, clocks))
        except Exception as error:
            return stopped("ceiling", error, f"{case} should give Gflop/s.")
        if abs(got - want) <= 0.01 * want:
            found.append(f"{name} {want:.0f}")
            continue
        hint = (
            "flops of a wavefront, over the clocks of a turn, times engines, times clocks a second (in units of 10^9)."
        )
        known = [
            (want / HD5870.wavefront, "the flops are those of one work-item; a wavefront has 64."),
            (want / HD5870.simd_engines, "there are 20 SIMD engines."),
            (want * 1e9, "in Gflop/s: the clock is 0.85 in units of 10^9 a second."),
            (
                flops * rate / (alu + clocks),
                "different wavefronts compute and fetch at the same time: which takes longer?",
            ),
            (flops * rate / max(bundles, clocks), "a bundle of a wavefront takes 4 clocks."),
            (flops * rate / alu, "the texture unit has to keep up as well."),
            (flops * rate / clocks, "the arithmetic takes its time as well."),
        ]
        hint = next((h for value, h in known if abs(got - value) <= 0.01 * value), hint)
        return Verdict(False, f"{case}, {name}, gives {got:.4g}; it should be {want:.0f} Gflop/s.", hint)
    return Verdict(True, f"The ceilings in Gflop/s: {', '.join(found)}.")
