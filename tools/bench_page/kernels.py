"""Compile the catalog's kernels to WebAssembly: the compiled engine's own IR, for a host without
flags of subnormals, with ``missing_math`` beside it.
"""

import base64
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from llvmlite import ir

import cypresskit as ck
from cypresskit.editing.steps import STEPS, reference_kernel
from cypresskit.il import Program, assemble
from cypresskit.kernels.generated import generate_kernel
from cypresskit.machine.compiled.processor import HostProcessor
from cypresskit.machine.compiled.translate import translate
from tools.bench_page import missing_math
from tools.bench_page.cypresskit_native import program_key
from tools.bench_page.engine import LIBRARY, add_entry, text_of, web_module

HOST = HostProcessor("generic", "", "soft")
ENTRY = "kernel"


def kernels_file() -> bytes:
    """Return the compiled kernels as JSON: by the hash of their program, what the engine knows of a
    translation (``head``), and a module with a function ``kernel`` (``code``).
    """
    library = missing_functions()
    kernels = {}
    for program in programs():
        key = program_key(program)
        if key in kernels:
            continue
        translation = translate(program, HOST)
        code = web_module(translation.text, lambda name: name == ENTRY, 1, library)
        head = asdict(replace(translation, text=""))
        kernels[key] = {"head": head, "code": base64.b64encode(code).decode()}
    return json.dumps(kernels).encode()


def programs() -> Iterator[Program]:
    """Yield the programs of the catalog, of the entries that lesson 12 judges, and those that the
    climb's steps begin and end with.
    """
    entries = ck.teach.contest.find_kernel("lazy"), generate_kernel(8, 8, 2)
    for kernel in (*ck.kernels.values(), *entries):
        yield kernel.program
    for step in STEPS.values():
        yield assemble(step.starter)
        yield reference_kernel(step.reference).program


def missing_functions() -> str:
    """Return the IR of the functions of ``missing_math``, by the names that LLVM calls."""
    library: Any = None
    for name in LIBRARY:
        (result,) = getattr(missing_math, name).overloads.values()
        kinds = [result.target_context.get_value_type(each) for each in result.signature.args]
        called = ir.FunctionType(kinds[0], kinds)
        library = add_entry(library, name, result, called, lambda _, own, *__: own)
    return text_of(library)
