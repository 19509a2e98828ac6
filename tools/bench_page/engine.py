"""Translate numba's code of the timing model's native functions to a WebAssembly module.

An export takes the address of a block of 64-bit words: a number is one word, an array its address,
shape and strides, a tuple its members. numba's data model turns them into arguments. The module
imports only its caller's memory, and has no data.

LLVM's object file lacks only the list of exports. It is added here, so no linker is needed.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from unittest.mock import patch

import llvmlite.binding as llvm
from llvmlite import ir
from numba import njit, types
from numba.core.compiler_lock import global_compiler_lock
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import as_dtype

from cypresskit.chip.compiled_later import CompiledLater
from cypresskit.chip.numba_native import OPTIONS
from cypresskit.timing import simulate
from cypresskit.timing.simulate import forget_reports
from tools.bench_page.cypresskit_native import kinds

TRIPLE = "wasm32-unknown-unknown"
FEATURES = "+simd128,+bulk-memory,+bulk-memory-opt,+nontrapping-fptoint,+sign-ext"
WORD = ir.IntType(64)
ENTRY = ir.FunctionType(ir.VoidType(), [WORD.as_pointer()])
SIMULATED = "sgemm_tn_compute", "sgemm_64x64_lds", "ddgemm_naive"
N = 64
#: WebAssembly's section numbers; the import section of a file that needs no linker.
CUSTOM, IMPORTS, EXPORTS, CODE, DATA = 0, 2, 7, 10, 11
HEAD = b"\0asm\1\0\0\0"
IMPORTED = re.compile(
    rb"[\x01\x02]\x03env\x0f__linear_memory\x02\x00.(\x03env\x0f__stack_pointer\x03\x7f\x01)?", re.S
)
#: Functions that WebAssembly has no instruction for: LLVM calls them by these names.
LIBRARY = "fma", "fmaxf", "fminf"


def engine_module() -> bytes:
    """Return the module. It has an export ``module.function(types)`` for each native function that
    a simulation calls.

    Raises ``ValueError`` if it contains data, or calls a function that it doesn't contain.
    """
    library = None
    for name, function, signature in native_functions():
        compiled = njit(**OPTIONS)(function)
        compiled.compile(signature)
        library = add_entry(library, name, compiled.overloads[signature], ENTRY, _unpacked)
    return web_module(text_of(library), lambda name: name.startswith("cypresskit."))


def native_functions() -> Iterator[tuple[str, Callable, tuple]]:
    """Yield the void functions that Python calls in simulations: the name of the export,
    the function, and numba's types of its arguments.
    """
    called: dict[str, tuple[Callable, tuple]] = {}
    _simulate()  # what isn't compiled yet can't be, once what it calls is patched
    with ExitStack() as patches:
        for function in [*_compiled_functions()]:
            name = f"{function.py_func.__module__}.{function.py_func.__name__}"
            patches.enter_context(patch(name, _noting_types(name, function, called)))
        _simulate()
    for entry, (source, arguments) in sorted(called.items()):
        yield entry, source, arguments


def _simulate() -> None:
    """Simulate launches that together call all native functions."""
    forget_reports()
    for kernel in SIMULATED:
        simulate(kernel, N)


def _compiled_functions() -> Iterator[CompiledLater]:
    """Yield the compiled functions of the timing model."""
    for name in [name for name in sys.modules if name.startswith("cypresskit.chip.")]:
        for value in vars(sys.modules[name]).values():
            if (
                isinstance(value, CompiledLater)
                and getattr(value.py_func, "__module__", "") == name
            ):
                yield value


def _noting_types(name: str, function: CompiledLater, called: dict) -> Callable:
    """Return a function that calls a compiled one, and notes its entry and numba's types of the
    arguments. (The types for which it was compiled depend on what else this process ran.)
    """

    def call(*arguments) -> None:
        function(*arguments)
        types_of = tuple(function.compiled.typeof_pyval(value) for value in arguments)
        called[f"{name}({','.join(kinds(arguments))})"] = function.py_func, types_of

    return call


def add_entry(library, name: str, result, called: ir.FunctionType, arguments_of: Callable):
    """Add a function of this name and type to a library, which is made for the first: it calls a
    compiled one with those arguments that ``arguments_of`` makes of its own. Return the library.
    """
    context, signature = result.target_context, result.signature
    library = library or context.codegen().create_library("engine")
    library.add_linking_library(result.library)
    module = library.create_ir_module(name)
    function = ir.Function(module, called, name)
    builder = ir.IRBuilder(function.append_basic_block())
    held = arguments_of(builder, function.args, context, signature.args)
    target = context.declare_function(module, result.fndesc)
    kinds = signature.return_type, signature.args
    _, value = context.call_conv.call_function(builder, target, *kinds, held)
    if called is ENTRY:
        builder.ret_void()
    else:
        builder.ret(value)
    library.add_ir_module(module)
    return library


def text_of(library) -> str:
    """Return a library's IR."""
    with global_compiler_lock:
        library.finalize()
    return library.get_llvm_str()


def _unpacked(builder, arguments, context, kinds) -> list:
    """Return values of numba's types, of the words at an address."""
    words = _words(builder, *arguments)
    return [_value(context, builder, each, words) for each in kinds]


def _words(builder, block) -> Iterator[ir.Value]:
    place = 0
    while True:
        yield builder.load(builder.gep(block, [WORD(place)]))
        place += 1


def _value(context, builder, kind, words):
    """Make a value of numba type ``kind`` from the next words."""
    if isinstance(kind, types.BaseTuple):
        members = [_value(context, builder, each, words) for each in kind]
        return context.make_tuple(builder, kind, members)
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder)
        data = builder.inttoptr(next(words), array.data.type)
        shape = [next(words) for _ in range(kind.ndim)]
        strides = [next(words) for _ in range(kind.ndim)]
        size = WORD(as_dtype(kind.dtype).itemsize)
        populate_array(array, data, shape, strides, size, meminfo=None)
        return array._getvalue()
    word, wanted = next(words), context.get_value_type(kind)
    if isinstance(wanted, ir.DoubleType):
        return builder.bitcast(word, wanted)
    return word if wanted == WORD else builder.trunc(word, wanted)


def web_module(
    text: str, is_exported: Callable[[str], bool], level: int = 2, library: str = ""
) -> bytes:
    """Compile LLVM IR, and a library that it calls, to a WebAssembly module without data. It
    imports its caller's memory, and perhaps a stack.

    Raises ``ValueError`` if it needs anything else.
    """
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(TRIPLE).create_target_machine(features=FEATURES, opt=2)
    module = llvm.parse_assembly(_for_any_target(text))
    module.link_in(llvm.parse_assembly(_for_any_target(library)))
    module.verify()
    module.triple, module.data_layout = TRIPLE, str(target.target_data)
    for value in (*module.functions, *module.global_variables):
        if not (value.is_declaration or is_exported(value.name) or value.name in LIBRARY):
            value.linkage = "internal"
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    if level == 1:  # a kernel, as in ``jit``
        tuning.loop_unrolling = tuning.loop_vectorization = False
        tuning.slp_vectorization = True
    builder = llvm.create_pass_builder(target, tuning)
    builder.getModulePassManager().run(module, builder)
    defined = [each.name for each in module.functions if not each.is_declaration]
    exported = [(at, name) for at, name in enumerate(defined) if is_exported(name)]
    return _with_exports(target.emit_object(module), exported)


def _for_any_target(text: str) -> str:
    text = re.sub(r'"target-(cpu|features)"="[^"]*"', "", text)
    return re.sub(r"^target (triple|datalayout).*", "", text, flags=re.M)


def _with_exports(file: bytes, exported: list[tuple[int, str]]) -> bytes:
    """Turn an object file into a module: export its functions of these numbers by these names."""
    listed = b"".join(
        _number(len(name)) + name.encode() + b"\0" + _number(at) for at, name in exported
    )
    kept = []
    for kind, contents in sections(file):
        if kind == DATA or (kind == IMPORTS and not IMPORTED.fullmatch(contents)):
            raise ValueError(f"a module needs a linker: section {kind} is {contents!r}")
        if kind == CODE:
            kept.append((EXPORTS, _number(len(exported)) + listed))
        if kind != CUSTOM:
            kept.append((kind, contents))
    return joined(kept)


def sections(module: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the sections of a module or an object file: number and contents."""
    place = len(HEAD)
    while place < len(module):
        kind, size, digits = module[place], 0, 0
        while True:  # the size is in LEB128
            digit = module[place + 1 + digits]
            size |= (digit & 127) << 7 * digits
            digits += 1
            if digit < 128:
                break
        place += 1 + digits + size
        yield kind, module[place - size : place]


def joined(parts: Iterable[tuple[int, bytes]]) -> bytes:
    """Return a module of sections."""
    return HEAD + b"".join(bytes([kind]) + _number(len(part)) + part for kind, part in parts)


def _number(number: int) -> bytes:
    """Encode a number in LEB128."""
    low = number & 127
    return bytes([low]) if low == number else bytes([low | 128]) + _number(number >> 7)
