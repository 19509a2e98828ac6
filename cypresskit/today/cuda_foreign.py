"""What of CUDA in Python isn't timed, and what to write in its place: one table."""

#: By name in `cuda`, or by what was met: what it is, and the cure.
TABLE = {
    "atomic": (
        "an atomic operation, whose time depends on data",
        "let each thread store to an element of its own, and add those up in a second launch",
    ),
    "const": ("an array of constants", "pass it as an argument"),
    "shfl_sync": ("a shuffle", "exchange the numbers through `cuda.shared.array`"),
    "vote": ("a vote of a warp", "exchange truths through `cuda.shared.array`"),
    "laneid": ("the lane", "write `cuda.threadIdx.x % 32`"),
    "cg": ("a cooperative group", "end the kernel, and launch a second one"),
    "nanosleep": ("a pause", "leave it out"),
    "to_device": ("a copy by the host", "copy before the launch"),
    "data branch": (
        "control flow that depends on data",
        "compute both values and select one: `x if c else y` or `max` without loads in it",
    ),
    "data index": (
        "an index that depends on data",
        "compute the index from thread numbers, or time the kernel on a card",
    ),
    "data loop": ("a loop that data end", "give the loop a size as its limit"),
    "three": (
        "a third dimension",
        "fold it into the second: `y, z = divmod(cuda.grid(2)[1], depth)`",
    ),
    "rows": (
        "a loop with a division or a function in which each thread walks a row of its own,"
        " modelled up to twice too slow",
        "let a workgroup share a row, so that neighbouring threads read neighbouring elements",
    ),
    "slice": ("a part of an array", "index single elements in a loop"),
    "complex": ("complex numbers", "pass real and imaginary parts as two arrays"),
    "string": ("an argument that is neither an array nor a number", "pass numbers or arrays"),
    "raise": ("an exception", "leave it out: a kernel can't tell the host"),
}
ALIKE = {"shfl_": "shfl_sync", "ballot": "vote", "all_sync": "vote", "any_sync": "vote",
         "match_": "vote", "eq_sync": "vote", "activemask": "vote", "lanemask": "vote"}  # fmt: skip


def refusal(name: str) -> str:
    """A sentence on what is met under a name, and what to write in its place."""
    start = next((known for begin, known in ALIKE.items() if name.startswith(begin)), name)
    if start not in TABLE:
        return f"`cuda.{name}` isn't known here: leave it out, or time the kernel on a card"
    what, cure = TABLE[start]
    subject = f"`cuda.{name}` is {what}" if " " not in name and name not in PLAIN else what
    return f"{subject}, which isn't timed: {cure}"


PLAIN = "slice", "complex", "string", "raise", "three", "rows"
