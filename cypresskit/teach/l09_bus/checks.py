"""Lesson 09: the checks of its three exercises on what the bus costs."""

from cypresskit.host.transfer import kernel_seconds, n_balance
from cypresskit.teach.formula import formula_exercise

# Byte/s of the bus, flop/s of the kernel
TRIED = [
    (3e9, 450e9),
    (6e9, 450e9),
    (10e9, 472e9),
    (3e9, 31e9),
]


def product_seconds(n, b, f, matrices=3, size=8):
    """Return the seconds to move n x n matrices, ``size`` bytes a number, and to multiply."""
    return matrices * size * n**2 / b + kernel_seconds(n, f)


def mistakes_in_seconds(n, b, f):
    """Return what each mistake gives."""
    transfers = 24 * n**2 / b
    kernel = kernel_seconds(n, f)
    return {
        "that is the transfers alone; the kernel has to run as well.": transfers,
        "that is the kernel alone; the matrices have to travel as well.": kernel,
        "that sends the old C as well: four matrices.": product_seconds(n, b, f, 4),
        "three matrices cross the bus, one after another: A and B, then C on its way back.": (
            product_seconds(n, b, f, 2)
        ),
        "a double takes 8 bytes.": product_seconds(n, b, f, size=4),
        "bandwidth is in bytes; a number has 8.": product_seconds(n, b, f, size=1),
        "each of N * N elements takes N multiplications and N additions.": transfers + n**3 / f,
        "a product takes 2 N^3 operations, not 2 N^2: each of N * N elements adds N products.": (
            transfers + 2 * n**2 / f
        ),
        "nothing overlaps here: the times add up.": max(transfers, kernel),
        "a matrix of N x N has N^2 numbers, not N.": 24 * n / b + kernel,
        "that is in milliseconds.": 1e3 * product_seconds(n, b, f),
    }


@formula_exercise(
    [(n, *both) for n, both in zip((1000, 2400, 512, 4096), TRIED)],
    mistakes_in_seconds,
    "Add the two times: bytes / (bytes/s) for the bus, and operations / (operations/s).",
    " s",
)
def check_seconds(n, b, f):
    """Exercise 1: ``seconds(n, bandwidth, rate)`` of C = A B in double precision: A and B go there,
    C comes back.
    """
    return product_seconds(n, b, f)


@formula_exercise(
    [(*both, *more) for both, more in zip(TRIED, ((8, 4), (4, 3), (8, 2), (16, 4)))],
    lambda b, f, s, moved: {
        "that is for four matrices, however many are moved.": 2 * s * f / b,
        "that is for doubles, whatever the size of a number.": 4 * moved * f / b,
        "16 F / B is for four matrices of doubles.": 16 * f / b,
        "the kernel does 2 N^3 operations, not N^3.": moved * s * f / b,
        "inverted: with a faster bus, a smaller N is enough.": 2 * b / (moved * s * f),
        "B and F are exchanged: a faster chip needs a larger N.": moved * s * b / (2 * f),
        "2 N^3 operations over `moved` N^2 numbers leave N itself, not its square.": (
            (moved * s * f / b / 2) ** 0.5
        ),
    },
    "write down both times, with `moved` matrices of N^2 numbers, set them equal and solve for N.",
    name="n_balance",
)
def check_balance(b, f, s, moved):
    """Exercise 2: ``n_balance(bandwidth, rate, size, moved)`` for ``moved`` matrices of numbers of
    ``size`` bytes.
    """
    return moved * s * f / (2 * b)


def mistakes_in_size(p, b, f):
    """Return what each mistake gives."""
    balance = n_balance(b, f)
    return {
        "at N_balance itself the share is one half.": p * balance,
        "that is right for one half alone; the share is N / (N + N_balance).": balance,
        "inverted: a larger share needs a larger N.": (1 - p) / p * balance,
        "at that N, transfers take this share of the *kernel's* time.": balance / p,
        "of share = N / (N + N_balance) follows (1 - share) N = share N_balance: what is N?": (
            (1 + p) / (1 - p) * balance
        ),
        "N_balance is upside down: a slower bus needs a larger N.": p / (1 - p) / balance,
        "transfers don't vanish: the share is N / (N + N_balance).": balance / (1 - p),
    }


@formula_exercise(
    [(share, *both) for share, both in zip((0.5, 0.8, 0.9, 0.25), TRIED)],
    mistakes_in_size,
    "the share is N / (N + N_balance); solve that for N.",
)
def check_size_for(p, b, f):
    """Exercise 3: ``size_for(share, bandwidth, rate)``, the n at which the product runs at
    ``share`` of the rate.
    """
    return p / (1 - p) * n_balance(b, f)
