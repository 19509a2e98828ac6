"""Compile the catalog's kernels to WebAssembly: the compiled engine's own IR, for a host without
flags of subnormals, with ``missing_math`` beside it.
"""

import base64
import inspect
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core.compiler_lock import global_compiler_lock

import cypresskit as ck
from cypresskit.editing.steps import STEPS, reference_kernel
from cypresskit.il import Program, assemble
from cypresskit.kernels.generated import generate_kernel
from cypresskit.machine.compiled.host import HostTarget
from cypresskit.machine.compiled.processor import HostProcessor
from tools.bench_page import missing_math
from tools.bench_page.cypresskit_native import program_key
from tools.bench_page.engine import LIBRARY, web_module

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
        translation = HostTarget(program, HOST).translation()
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
    own = {name: value for name, value in vars(missing_math).items() if callable(value)}
    for name, function in own.items():
        setattr(missing_math, name, njit(error_model="numpy", _nrt=False)(function))
    for name in LIBRARY:
        kind = types.float32 if name.endswith("f") else types.float64
        count = len(inspect.signature(own[name]).parameters)
        compiled = getattr(missing_math, name)
        compiled.compile((kind,) * count)
        (result,) = compiled.overloads.values()
        library = library or result.target_context.codegen().create_library("missing_math")
        library.add_linking_library(result.library)
        library.add_ir_module(_entry(library, name, result))
    for name, function in own.items():
        setattr(missing_math, name, function)
    with global_compiler_lock:
        library.finalize()
    return library.get_llvm_str()


def _entry(library, name: str, result) -> ir.Module:
    """Return a function with LLVM's name that calls a compiled one."""
    context, signature = result.target_context, result.signature
    module = library.create_ir_module(name)
    kinds = [context.get_value_type(each) for each in signature.args]
    kind = context.get_value_type(signature.return_type)
    function = ir.Function(module, ir.FunctionType(kind, kinds), name)
    builder = ir.IRBuilder(function.append_basic_block())
    target = context.declare_function(module, result.fndesc)
    _, value = context.call_conv.call_function(
        builder, target, signature.return_type, signature.args, function.args
    )
    builder.ret(value)
    return module
