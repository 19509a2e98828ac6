"""Lesson 10: a small card that counts its work, and the checks of the three exercises."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from cypresskit.blas import CardMemoryError, MatrixFactory
from cypresskit.blas.factory import OnCard
from cypresskit.devices import HD5870
from cypresskit.host.blocked import MULTIPLE, card_bytes
from cypresskit.teach.check import Verdict, exercise, tried, unless
from cypresskit.teach.formula import chance, formula_exercise

TINY = replace(HD5870, name="tiny card", memory_bytes=600_000)


def strips_loaded(order: Iterable[tuple[int, int]]) -> int:
    """The number of strips loaded for blocks in ``order``, if the card keeps the last strip of A
    and of B.
    """
    count, held = 0, (-1, -1)
    for block in order:
        count += sum(now != before for now, before in zip(block, held))
        held = block
    return count


def twins(block: int, depth: int) -> float:
    """Bytes on the card for a square block and strips ``depth`` deep, double buffered: exercise 1's
    buffers.
    """
    return sum(card_bytes(block, depth).values())


def fitting(memory: int, depth: int, least: int = MULTIPLE, size: Callable = twins) -> int:
    """The largest block, a multiple of ``least``, whose buffers, of ``size(block, depth)`` bytes,
    fit the memory.
    """
    return next(b for b in range(0, memory, least) if size(b + least, depth) > memory)


@formula_exercise(
    [
        (1 << 30, 16384),
        (1 << 30, 4096),
        (2 << 30, 16384),
        (256 << 20, 8192),
        (int(twins(1024, 4096)), 4096),
    ],
    {
        "that block is not a multiple of 128.": lambda m, d: fitting(m, d, 1),
        "that is one step too far: its buffers no longer fit.": lambda m, d: fitting(m, d) + 128,
        "each strip is there twice, and a block of C three times.": lambda m, d: fitting(
            m, d, size=lambda block, depth: 8 * (2 * depth + block) * block
        ),
        "buffers that fill the card to its last byte fit too.": lambda m, d: fitting(m - 1, d),
    },
    'print the bytes that b = 1792 and 1920 take, and compare with the table in "How large a'
    ' block?".',
)
def check_largest(m, d):
    """Exercise 1: ``largest(memory_bytes, depth)``, the largest block whose buffers fit."""
    return fitting(m, d)


@exercise
def check_order(order: Callable) -> Verdict:
    """Exercise 2: ``order(rows, columns)``, all blocks (i, j), only one of i and j changing from
    one to the next.
    """
    drawn = chance.randint(4, 9), chance.randint(4, 9)  # which nobody can have written down
    for rows_, columns in ((2, 3), (1, 4), (4, 1), drawn, (3, 3)):
        call = f"order({rows_}, {columns})"
        hint = f"the call was {call}; it has to return a list of pairs (i, j)."
        blocks = tried(
            call,
            lambda *size: [(_plain(i), _plain(j)) for i, j in order(*size)],
            rows_,
            columns,
            hint=hint,
        )
        want = {(i, j) for i in range(rows_) for j in range(columns)}
        if set(blocks) != want or len(blocks) != len(want):
            more = len(blocks) - len(set(blocks) & want)
            lacking, none = (
                want - set(blocks),
                next((block for block in blocks if block not in want), None),
            )
            what = (
                f"lacks block {min(lacking)}"
                if lacking
                else f"has {more} block{'s' * (more > 1)} too many"
            )
            what += f", and {none} is none" * (none is not None)
            return Verdict(
                False, f"{call} {what}: {_shown(blocks)}.", "each block of C exactly once."
            )
        loads = strips_loaded(blocks)
        if loads > len(want) + 1:
            last, block = next((a, b) for a, b in pairwise(blocks) if a[0] != b[0] and a[1] != b[1])
            finding = (
                f"{call} has every block, but loads {loads} strips; {len(want) + 1} are enough."
            )
            finding += f" From {last} to {block} both i and j change."
            hint = (
                "at the end of a row go down and come back along the next: every other row"
                " backwards."
            )
            return Verdict(False, finding, hint)
    return Verdict(
        True, f"Every block once, and one strip for each but the first: {_shown(blocks)}."
    )


def _plain(number) -> float:
    return int(number) if number % 1 == 0 else float(number)


def _shown(blocks: list) -> str:
    return (" ".join(map(str, blocks[:8])) or "it has none") + " and so on" * (len(blocks) > 8)


def watched_card() -> tuple[MatrixFactory, list[int], list[np.ndarray]]:
    """A card, the flops of each product on it, and the numbers that it computed and sent back, in
    lists out of an answer's reach.
    """
    flops, given, sent = list[int](), list[np.ndarray](), list[OnCard]()

    class WatchedCard(MatrixFactory):
        def upload(self, *arguments):
            sent.append(super().upload(*arguments))
            return sent[-1]

        def multiply(self, a, *others, **options):
            result = super().multiply(a, *others, **options)
            flops.append(
                2 * result.shape[0] * result.shape[1] * a.shape[not options.get("trans_a")]
            )
            return result

        def download(self, matrix):
            values = super().download(matrix)
            if not any(matrix is each for each in sent):
                given.append(np.asarray(values).ravel())
            return values

    return WatchedCard(TINY), flops, given


@exercise
def check_product(product: Callable) -> Verdict:
    """Exercise 3: ``product(gpu, a, b, block)`` computes a b on a card that can't hold the
    matrices.
    """
    rng = np.random.default_rng(1792)
    for n, block in ((192, 64), (200, 64)):
        a, b = rng.integers(-4, 5, (2, n, n)).astype(np.float64)
        (gpu, flops, given), call = watched_card(), f"product(gpu, a, b, {block})"
        hint = f"the call was {call} with {n} x {n} matrices."
        try:
            c = tried(call, product, gpu, a.copy(), b.copy(), block, hint=hint)
        except CardMemoryError as error:
            return Verdict(
                False,
                f"The card is full: {error}",
                "free what a block no longer needs, and send strips.",
            )
        unless(c is not None, "product returns nothing.", "keep the line `return c` at its end.")
        c = tried(call, np.asarray, c, np.float64, hint=hint)
        finding = f"For N = {n} and blocks of {block}: "
        unless(
            c.shape == (n, n),
            f"{finding}the result has shape {c.shape}.",
            "c is N x N, whatever the block.",
        )
        unless(
            c.any(),
            f"{finding}the result is all zeros.",
            "download each block into its place in c.",
        )
        if not np.array_equal(c, a @ b):
            i, j = np.argwhere(c != a @ b)[0]
            finding += (
                f"the first wrong element is c[{i}, {j}], in block ({i // block}, {j // block})."
            )
            full = c[i:].any() and c[:, j:].any()
            ends = (
                "all is 0 from there on: do the loops reach the last block, and is `return` behind"
                " both?"
            )
            return Verdict(
                False,
                finding,
                "rows i.. of a times columns j.. of b are c[i.., j..]." if full else ends,
            )
        computed = (
            f"{finding}the card computed {len(flops)} products, {sum(flops):,} flops of"
            f" {2 * n**3:,}."
        )
        unless(sum(flops) >= 2 * n**3, computed, "multiply on the card: gpu.multiply.")
        came = np.concatenate([*given, []])  # whole, or in parts that c adds up
        each = zip(*np.unique(c, return_counts=True))
        fine = came.sum() == c.sum() or all(
            np.count_nonzero(came == number) >= count for number, count in each
        )
        lacks = f"{finding}c is right, but its numbers never came from the card."
        unless(fine, lacks, "gpu.download gives a product that the card computed.")
        held = f"{finding}{gpu.used:,} bytes are still in use:\n{gpu}"
        unless(not gpu.used, held, "gpu.free what you uploaded, and the products.")
    finding = (
        f"The product is right at two sizes, on a card of {TINY.memory_bytes:,} bytes, and left it"
        " empty."
    )
    return Verdict(True, finding)
