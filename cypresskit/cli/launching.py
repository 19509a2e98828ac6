"""What a program is launched on from a shell: the options of `run`, `check` and `time`, and the arrays in them."""

import argparse
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cypresskit.cli.command import CommandError, Option, option
from cypresskit.cli.files import read_array, read_program
from cypresskit.devices import HD5870
from cypresskit.il import Program
from cypresskit.machine.launch import MAX_ITEMS
from cypresskit.machine.shape import Shape

MOST_DIGITS = 9  # of a number on the command line

_FILES = {
    "input": "texture I: an array (height, width) or (height, width, components)",
    "constant": "constant buffer cbI: an array of rows of four, or numbers as in 0=64.0,1e3,8 (digits alone are an "
    "integer)",
    "output": "where output stream oI is written; a file that exists keeps its shape and type, a new one is float32 "
    "(height, width, 4)",
}
OPTIONS: tuple[Option, ...] = (
    option("--domain", metavar="WxH", help="pixel mode: WIDTHxHEIGHT; compute mode: a number"),
    *(
        option(f"--{name}", action="append", default=[], metavar="I=FILE.npy", help=f"{what}; may be repeated")
        for name, what in _FILES.items()
    ),
    option("--global", dest="memory", metavar="N=FILE.npy", help="where global memory is written, N elements of 16 "
           "bytes that start at zero (1M: 1048576); N may be a .npy file that holds what they start as"),
)  # fmt: skip


@dataclass
class Arrays:
    """The arguments of ``ck.launch`` but for the program, and the files of output streams and of global memory, "g"."""

    arguments: dict[str, Any]
    targets: dict[int | str, Path]

    def program(self, file: str) -> Program:
        """The program in a file, if it can be launched on these; CommandError otherwise."""
        program = read_program(Path(file))
        outputs = self.arguments["outputs"]
        if program.mode == "compute" and outputs:
            raise CommandError(f"{file} is a compute kernel: it has no --output, its results go to --global")
        written = {number for kind, number, _ in program.needs if kind == "o"}
        for number in outputs.keys() - written:
            streams = ", ".join(f"o{n}" for n in sorted(written)) or "no output stream"
            raise CommandError(f"--output {number}={self.targets[number]}: {file} writes {streams}")
        return program


def read_arrays(args: argparse.Namespace) -> Arrays:
    """The arrays that the options name."""
    domain = _domain(args.domain)
    streams, outputs = _numbered("--output", args.output), {}
    for number, target in streams.items():
        if len(domain) != 2:
            raise CommandError(f"--output {number}={target}: output streams need --domain WIDTHxHEIGHT")
        shape = domain[::-1]
        outputs[number] = read_array(target) if target.exists() else _zeros(f"--output {number}={target}", *shape)
    targets: dict[int | str, Path] = dict(streams.items())
    memory = None
    if args.memory:
        start, equals, name = args.memory.partition("=")
        if not equals or not name:
            raise CommandError(f"--global {args.memory}: expected N=FILE.npy, such as 4096=g.npy")
        count = _count(start)
        memory = read_array(Path(start)) if count is None else _zeros(f"--global {args.memory[:40]}", count)
        targets["g"] = Path(name)
    inputs = {i: read_array(file) for i, file in _numbered("--input", args.input).items()}
    arguments = {"domain": domain if len(domain) > 1 else domain[0], "inputs": inputs, "constants": _constants(args)}
    return Arrays(arguments | {"outputs": outputs, "global_memory": memory}, targets)


def _zeros(where: str, *shape: int) -> np.ndarray:
    """Elements of four floats, as many as the card could hold."""
    if math.prod(shape) > (most := HD5870.memory_bytes // 16):
        raise CommandError(f"{where}: the card's memory holds {most:,} elements of 16 bytes")
    return np.zeros((*shape, 4), np.float32)


def read_shape(args: argparse.Namespace, program: Program) -> Shape:
    """The launch that the options tell the sizes of; CommandError or ValueError where they don't."""
    textures: dict = {i: read_array(file) for i, file in _numbered("--input", args.input).items()}
    for number, text in _numbered("--texture", args.texture).items():
        sizes = str(text).lower().split("x")
        known = len(sizes) in (2, 3) and all(s.isdecimal() and len(s) <= MOST_DIGITS and s.strip("0") for s in sizes)
        if not known or (*map(int, sizes), 16)[2] not in (4, 8, 16):
            wanted = (
                "WIDTHxHEIGHT in texels, such as 0=512x128, and behind it x4 or x8 where texels have that many bytes"
            )
            raise CommandError(f"--texture {number}={text}: expected {wanted}, not 16")
        textures[number] = tuple(map(int, sizes))
    if args.memory and _count(args.memory.partition("=")[0]) is None:
        read_array(Path(args.memory.partition("=")[0]))  # its size doesn't matter, but that it is one
    used = {kind: sorted(number for of, number, _ in program.needs if of == kind) for kind in ("resource", "g")}
    if unused := sorted(set(textures) - set(used["resource"])):
        from_what = f"resource {', '.join(map(str, used['resource']))}" if used["resource"] else "no resource"
        raise CommandError(f"texture {unused[0]} was given: {program.name} fetches from {from_what}")
    if args.memory and not used["g"]:
        raise CommandError(f"--global {args.memory[:40]}: {program.name} uses no global memory")
    outputs = {i: read_array(file) for i, file in _numbered("--output", args.output).items() if file.exists()}
    return Shape(program, _domain(args.domain), textures, _constants(args), outputs)  # type: ignore[arg-type]


def _constants(args: argparse.Namespace) -> dict[int, np.ndarray]:
    found = {}
    for number, text in _numbered("--constant", args.constant).items():
        words = str(text).split(",")
        try:
            numbers = [int(word) if word.lstrip("+-").isdecimal() else float(word) for word in words]
        except ValueError:
            found[number] = read_array(text)
        else:
            bits = [_bits(f"--constant {number}=", *pair) for pair in zip(words, numbers, strict=True)]
            found[number] = np.array(bits, np.uint32)
    return found


def _bits(where: str, word: str, value: float) -> int:
    """A whole number's 32 bits, or those of the nearest float."""
    if isinstance(value, int):
        if -(1 << 31) <= value < 1 << 32:
            return value & 0xFFFFFFFF
    else:
        with np.errstate(over="ignore"):
            single = np.float32(value)
        if "inf" in word.lower() or not np.isinf(single):
            return int(single.view(np.uint32))
    raise CommandError(f"{where}{word[:40]}: the number doesn't fit in 32 bits")


def _count(text: str) -> int | None:
    """A number of elements, in thousands or millions of 1024 if K or M says so."""
    digits = text[:-1] if text[-1:] in "KM" and text else text
    if not digits.isdecimal():
        return None
    return int(digits[: MOST_DIGITS + 1]) * {"K": 1 << 10, "M": 1 << 20}.get(text[-1], 1)


def _domain(text: str | None) -> tuple[int, ...]:
    if text is None:
        raise CommandError("say --domain: WIDTHxHEIGHT in pixel mode, a number of work-items in compute mode")
    sizes = text.lower().split("x")
    if len(sizes) > 3 or not all(size.isdecimal() and size.strip("0") for size in sizes):
        raise CommandError(f"--domain {text[:40]}: expected WIDTHxHEIGHT, such as 64x32, or a number of work-items")
    if max(map(len, sizes)) > MOST_DIGITS or math.prod(map(int, sizes)) > MAX_ITEMS:
        raise CommandError(f"--domain {text[:40]}: at most {MAX_ITEMS:,} work-items are run")
    return tuple(int(size) for size in sizes)


def _numbered(name: str, pairs: Sequence[str]) -> dict[int, Path]:
    """`["0=a.npy", "1=b.npy"]` as `{0: Path("a.npy"), 1: Path("b.npy")}`."""
    files: dict[int, Path] = {}
    for pair in pairs:
        number, equals, file = pair.partition("=")
        if not equals or not number.isdecimal() or len(number) > MOST_DIGITS or not file:
            raise CommandError(f"{name} {pair}: expected NUMBER=FILE.npy, such as 0=a.npy")
        if int(number) in files:
            raise CommandError(f"{name} {pair}: number {number} was given before, as {files[int(number)]}")
        files[int(number)] = Path(file)
    return files


def in_options(message: str) -> str:
    """A message of ``ck.launch`` about what to pass, in the options of a command."""
    for words in (" (max_instructions raises the limit.)", ', or engine="fast" without observers'):
        message = message.replace(words, "")
    message = re.sub(r"pass constants=\{(\d+): array\}", r"pass --constant \1=FILE.npy, or numbers: \1=64.0,1", message)
    message = re.sub(r"pass (input|output)s=\{(\d+): array\}", r"pass --\1 \2=FILE.npy", message)
    message = re.sub(r"pass (texture)s=\{(\d+): .*\}", r"pass --\1 \2=WIDTHxHEIGHT", message)
    return message.replace("pass global_memory=array", "pass --global ELEMENTS=FILE.npy")
