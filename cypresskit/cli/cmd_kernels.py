"""`cypresskit kernels`: the catalogue with its figures.

Registers and bundles come from the compiler, Gflop/s from the timing model; see ``blas.figures``.
"""

import argparse

from cypresskit.cli.command import command, json_option, option, show


@command(
    "kernels",
    "list the catalogue of kernels",
    "For each: precision, mode, the block of C that a work-item computes, registers and the bundles of a turn of its "
    "loop as compiled for the HD 5870, Gflop/s on it at N = 2048 by the timing model, and what it teaches.",
    json_option("a list of the table's rows"),
    option("--update", action="store_true", help="compile and time all of them anew first, and keep the figures"),
)
def kernels(args: argparse.Namespace) -> None:
    """List the catalogue."""
    import cypresskit as ck

    if args.update:
        from tqdm import tqdm

        from cypresskit.blas.measure import update

        update(tqdm(ck.kernels.values(), "compiling and timing"))
    rows = [_row(kernel) for kernel in ck.kernels.values()]
    head = "kernel                 precision      mode     block  registers  bundles  Gflop/s  it teaches"
    show(args, rows, "\n".join([head, *map(_line, rows)]))


def _row(kernel) -> dict:
    from cypresskit.blas.choice import figures

    of = figures(kernel)
    return {
        "kernel": kernel.name,
        "precision": kernel.precision,
        "mode": kernel.mode,
        "block": list(kernel.block),
        "registers": of.registers,
        "bundles": of.bundles,
        "gflops": of.gflops,
        "teaches": kernel.teaches,
    }


def _line(row: dict) -> str:
    kind = f"{row['kernel']:22} {row['precision']:14} {row['mode']:8} {'x'.join(map(str, row['block'])):6}"
    return f"{kind} {row['registers']:9}  {row['bundles']:7}  {row['gflops']:7.1f}  {row['teaches']}"
