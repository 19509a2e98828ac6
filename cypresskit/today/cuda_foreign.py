"""What of CUDA in Python isn't timed, and what to write instead."""

#: By name in `cuda`: what it is, and the cure.
IN_CUDA = {
    "atomic": (
        "an atomic operation, whose time depends on data",
        "let each thread store to an element of its own, and add those up in a second launch",
    ),
    "const": ("an array of constants", "pass it as an argument"),
    "shfl": ("a shuffle", "exchange the numbers through `cuda.shared.array`"),
    "vote": ("a vote of a warp", "exchange truths through `cuda.shared.array`"),
    "laneid": ("the lane", "write `cuda.threadIdx.x % 32`"),
    "cg": ("a cooperative group", "end the kernel, and launch a second one"),
    "nanosleep": ("a pause", "leave it out"),
    "to_device": ("a copy by the host", "copy before the launch"),
}
#: The same by what was found.
FOUND = {
    "data branch": (
        "control flow that depends on data",
        "select a value by `x if c else y` or `max`, without loads in it, and give a loop a size"
        " as its limit",
    ),
    "data index": (
        "an index that depends on data",
        "compute the index from thread numbers, or time the kernel on a card",
    ),
    "three": (
        "a third dimension",
        "fold it into the second: `y, z = divmod(cuda.grid(2)[1], depth)`",
    ),
    "rows": (
        "a loop with a division or a function in which each thread walks a row of its own,"
        " modeled up to twice too slow",
        "let a workgroup share a row, so that neighboring threads read neighboring elements",
    ),
    "slice": ("an array as a whole, or a part of it", "index single elements in a loop"),
    "iteration": (
        "iteration over an array or a tuple",
        "index single elements, and write a loop over `range`",
    ),
    "complex": (
        "complex numbers",
        "compute real and imaginary parts as two numbers, from two arrays",
    ),
    "argument": ("an argument that is neither an array nor a number", "pass numbers or arrays"),
    "raise": ("an exception", "leave it out: a kernel can't tell the host"),
}
VOTES = "ballot", "all_sync", "any_sync", "match_", "eq_sync", "activemask", "lanemask"


def refusal(name: str) -> str:
    """Return a sentence on what was found under a name, and what to write instead."""
    if name in FOUND:
        return "{}, not timed here: {}".format(*FOUND[name])
    entry = "shfl" if name.startswith("shfl_") else "vote" if name.startswith(VOTES) else name
    if entry not in IN_CUDA:
        return f"`cuda.{name}` isn't known here: leave it out, or time the kernel on a card"
    return "`cuda.{}` is {}, not timed here: {}".format(name, *IN_CUDA[entry])
