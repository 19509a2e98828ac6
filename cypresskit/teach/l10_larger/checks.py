"""Lesson 10: the checks of the three exercises."""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise

import numpy as np

from cypresskit.devices import HD5870
from cypresskit.host import Machine, blocked_timeline
from cypresskit.host.blocked import MULTIPLE, card_bytes, choose_block
from cypresskit.isolated import Answer
from cypresskit.teach.check import Verdict, call_answer, check_rng, function_exercise, require
from cypresskit.teach.formula import formula_exercise
from cypresskit.teach.l10_larger.visible.card import run_on_card

CARD_BYTES = 600_000  # of exercise 3's card
#: Mistakes in exercise 1's formula, by hint.
MISCOUNTED = {
    "each strip is there twice, and a block of C three times.": lambda b, d: 8 * (2 * d + b) * b,
    "each strip is there twice: one in use, one in flight.": lambda b, d: 8 * (2 * d + 3 * b) * b,
    "a block of C is there three times.": lambda b, d: 8 * (4 * d + b) * b,
    "the three blocks of C need room, too.": lambda b, d: 8 * 4 * d * b,
    "a double has 8 bytes.": lambda b, d: (4 * d + 3 * b) * b,
}


def strips_loaded(order: Iterable[tuple[int, int]]) -> int:
    """Return the number of strips loaded for blocks in ``order``, if the card keeps the last strip
    of A and of B.
    """
    count = 0
    held = (-1, -1)
    for block in order:
        count += sum(now != before for now, before in zip(block, held))
        held = block
    return count


def twins(block: int, depth: int) -> float:
    """Return the bytes of exercise 1's double buffers, for a square block and strips ``depth``
    deep.
    """
    return sum(card_bytes(block, depth).values())


def fitting(memory: int, depth: int, least: int = MULTIPLE, size: Callable = twins) -> int:
    """Return the largest block, a multiple of ``least``, whose buffers of ``size(block, depth)``
    bytes fit into the memory.
    """
    return next(b for b in range(0, memory, least) if size(b + least, depth) > memory)


def simulate_padded(n: int = 1920, block: int = 1792) -> str:
    """Simulate a square product in blocks of a size, and in those that the program chooses. Return
    what is wasted, and the speeds.
    """
    machine = Machine(HD5870)
    rows = []
    for name, size in {"block": block, "chosen": choose_block(n, n, n, machine)}.items():
        timeline = blocked_timeline(n, n, n, machine, block=size)
        whole = -(-n // size) * size
        rows.append(
            f"N = {n}, {name} {size}: computed as {whole},"
            f" {100 * (1 - (n / whole) ** 2):.0f} % wasted, {timeline.gflops:,.0f} Gflop/s"
        )
    return "\n".join(rows)


@formula_exercise(
    [
        (1 << 30, 16384),
        (1 << 30, 4096),
        (2 << 30, 16384),
        (256 << 20, 8192),
        (int(twins(1024, 4096)), 4096),
    ],
    lambda m, d: (
        {hint: fitting(m, d, size=size) for hint, size in MISCOUNTED.items()}
        | {
            "that block is not a multiple of 128.": fitting(m, d, 1),
            "that is one step too far: its buffers no longer fit.": fitting(m, d) + 128,
            "buffers that fill the card to its last byte fit too.": fitting(m - 1, d),
        }
    ),
    'print the bytes that b = 1792 and 1920 take, and compare with the last table in "How large a'
    ' block?".',
)
def check_largest(m, d):
    """Exercise 1: ``largest(memory_bytes, depth)``, the largest block whose buffers fit."""
    return fitting(m, d)


@function_exercise
def check_order(order: Callable) -> Verdict:
    """Exercise 2: ``order(rows, columns)``, all blocks (i, j), only one of i and j changing from
    one to the next.
    """
    drawn = check_rng.randint(4, 9), check_rng.randint(4, 9)  # so no answer can list the tasks
    for rows_, columns in ((2, 3), (1, 4), (4, 1), drawn, (3, 3)):
        call = f"order({rows_}, {columns})"
        hint = "it has to return a list of pairs (i, j)."
        blocks = call_answer(
            call,
            lambda *size: [(_plain(i), _plain(j)) for i, j in order(*size)],
            rows_,
            columns,
            hint=hint,
        )
        want = {(i, j) for i in range(rows_) for j in range(columns)}
        if set(blocks) != want or len(blocks) != len(want):
            more = len(blocks) - len(set(blocks) & want)
            lacking = want - set(blocks)
            none = next((block for block in blocks if block not in want), None)
            if lacking:
                what = f"lacks block {min(lacking)}"
            else:
                what = f"has {more} {'block' if more == 1 else 'blocks'} too many"
            what += f", and {none} is no block" * (none is not None)
            return Verdict(
                False, f"{call} {what}: {_shown(blocks)}.", "each block of C exactly once."
            )
        loads = strips_loaded(blocks)
        if loads > len(want) + 1:
            last, block = next((a, b) for a, b in pairwise(blocks) if a[0] != b[0] and a[1] != b[1])
            message = (
                f"{call} has every block, but loads {loads} strips; {len(want) + 1} are enough."
            )
            message += f" From {last} to {block} both i and j change."
            hint = (
                "at the end of a row go down and come back along the next: every other row"
                " backwards."
            )
            return Verdict(False, message, hint)
    return Verdict(
        True, f"Every block once, and one strip for each but the first: {_shown(blocks)}."
    )


def _plain(number) -> float:
    return int(number) if number % 1 == 0 else float(number)


def _shown(blocks: list) -> str:
    return (" ".join(map(str, blocks[:8])) or "it has none") + " and so on" * (len(blocks) > 8)


@function_exercise
def check_product(product: Answer) -> Verdict:
    """Exercise 3: ``product(gpu, a, b, block)`` computes a b on a card that can't hold the
    matrices.
    """
    rng = np.random.default_rng(1792)
    for n, block in ((192, 64), (200, 48)):
        a, b = rng.integers(-4, 5, (2, n, n)).astype(np.float64)
        call = f"product(gpu, a, b, {block})"
        run = partial(product.through, run_on_card)
        hint = f"{n} x {n} matrices: rows i.. of a times columns j.. of b are c[i.., j..]. Upload"
        hint += " both parts, download their product, and free all three."
        c, flops, used, card = call_answer(call, run, a, b, block, CARD_BYTES, hint=hint)
        require(c is not None, "product returns nothing.", "keep the line `return c` at its end.")
        c = call_answer(call, np.asarray, c, np.float64, hint=hint)
        where = f"For N = {n} and blocks of {block}: "
        shape = f"{where}the result has shape {c.shape}."
        require(c.shape == (n, n), shape, "c is N x N, whatever the block.")
        zeros = f"{where}the result is all zeros."
        require(c.any(), zeros, "download each block into its place in c.")
        if wrong := _find_wrong_element(c, a @ b, block):
            return Verdict(False, where + wrong[0], wrong[1])
        did = f"the card computed {len(flops)} products, {sum(flops):,} flops of {2 * n**3:,}."
        require(sum(flops) >= 2 * n**3, where + did, "multiply on the card: gpu.multiply.")
        most, asked = max(flops), 2 * n * block**2
        size = f"{where}a product has {most:,} flops, and a block of C only {asked:,}."
        sides = "its sides are `block`, whatever that is."
        require(most <= asked, size, sides)
        enough = (-(-n // block)) ** 3  # also if the depth is cut in blocks
        require(len(flops) <= enough, f"{where}{did} {enough} are enough.", sides)
        held = f"{where}{used:,} bytes are still in use:\n{card}"
        require(not used, held, "gpu.free what you uploaded, and the products.")
    message = (
        f"The product is correct at two sizes, on a card of {CARD_BYTES:,} bytes, which is empty"
        " again."
    )
    return Verdict(True, message)


def _find_wrong_element(c: np.ndarray, right: np.ndarray, block: int) -> tuple[str, str] | None:
    """Return (message, hint) on the first wrong element of c, or None."""
    wrong = ~np.isclose(c, right, rtol=0, atol=1e-3)
    if not wrong.any():
        return None
    i, j = np.argwhere(wrong)[0]
    message = f"the first wrong element is c[{i}, {j}], in block ({i // block}, {j // block})."
    if c[i:].any() and c[:, j:].any():
        return message, "rows i.. of a times columns j.. of b are c[i.., j..]."
    ends = "all is 0 from there on: do the loops reach the last block, and is `return` after both?"
    return message, ends
