"""What of CUDA in Python isn't timed, and what to write instead."""

#: By name in `cuda`: what to write instead.
IN_CUDA = {
    "atomic": "its time depends on data. Let each thread store to an element of its own, and add"
    " those up in a second launch",
    "const": "pass the array as an argument",
    "shfl": "exchange the numbers through `cuda.shared.array`",
    "vote": "exchange the conditions through `cuda.shared.array`",
    "laneid": "write `cuda.threadIdx.x % 32`",
    "cg": "end the kernel, and launch a second one",
    "to_device": "copy before the launch",
}
#: By what was found: the subject of "timed here", and what to write instead.
FOUND = {
    "data branch": (
        "a branch or a loop that depends on data isn't",
        "load first, then select a value by `x if c else y` or `max`; let a loop run to a size",
    ),
    "data index": (
        "an index that depends on data isn't",
        "compute it from thread and block numbers, or time the kernel on a GPU",
    ),
    "three": (
        "a third dimension isn't",
        "fold it into the second: `y, z = divmod(cuda.grid(2)[1], depth)`",
    ),
    "rows": (
        "a loop with a division or a function, in which each thread reads a row of its own, isn't",
        "let the threads of a block share a row, so that neighboring threads read neighboring"
        " elements",
    ),
    "end": (
        "a loop that each thread leaves by integers that don't grow evenly isn't",
        "let it run to a size, or time the kernel on a GPU",
    ),
    "pace": (
        "an index that moves by another step for each thread isn't",
        "let all threads move by the same step in each iteration, or time the kernel on a GPU",
    ),
    "slice": ("an array or a slice as a value isn't", "index single elements in a loop"),
    "iteration": (
        "iteration over an array or a tuple isn't",
        "index single elements in a loop over `range`",
    ),
    "complex": (
        "complex numbers aren't",
        "compute real and imaginary parts as two numbers, from two arrays",
    ),
    "raise": ("an exception isn't", "leave out `raise` and `try`"),
}
VOTES = tuple("ballot all_ any_ match_ eq_ activemask lanemask syncthreads_".split())


def refusal(name: str) -> str:
    """Return a sentence on what was found under a name, and what to write instead."""
    if name in FOUND:
        return "{} timed here: {}".format(*FOUND[name])
    entry = "shfl" if name.startswith("shfl_") else "vote" if name.startswith(VOTES) else name
    cure = IN_CUDA.get(entry, "leave it out, or time the kernel on a GPU")
    return f"`cuda.{name}` isn't timed here: {cure}"
