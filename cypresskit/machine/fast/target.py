"""What code is generated for: this host's processor, or another one."""

import platform
from dataclasses import dataclass
from functools import cache

from cypresskit.il.fused import host_machine, host_processor

REGISTERS = {"%zmm": 32 * 64, "%ymm": 16 * 32, "%xmm": 16 * 16}  # bytes of all vector registers of x86
NEON = 32 * 16  # and of ARM's


@dataclass(frozen=True)
class Target:
    """An LLVM processor ``name`` with ``features``, whether it has a fused multiply-add, the ``mode`` (of ``modes``)
    that flushes subnormals, and ``vectors``: bytes of its vector registers."""

    name: str
    features: str
    fused: bool
    mode: str
    vectors: int

    @property
    def room(self) -> int:
        """Bytes of vector registers for the sums of a loop."""
        return self.vectors * 3 // 4 if self.vectors > NEON else self.vectors // 2


_chosen = ""


def compile_for(name: str) -> None:
    """From now on, compile as if this processor were that of ``name``, as ``target`` takes it."""
    global _chosen
    _chosen = name


def this_host() -> Target:
    """The processor that this process runs on, or the one that ``compile_for`` chose."""
    return target(_chosen)


@cache
def target(name: str) -> Target:
    """What code is generated for, as if this processor were that of LLVM's ``name``; "portable" is this one without a
    flush mode, "flags" with one that is trusted as far as ARM's, and "" this one."""
    import llvmlite.binding as llvm

    cpu, features = host_processor() if name in ("", "portable", "flags") else (name, "")
    kind = "<16 x float>"
    text = f"""declare {kind} @llvm.fma.v16f32({kind}, {kind}, {kind})
    define void @f(ptr %p) {{
      %a = load {kind}, ptr %p
      %r = call {kind} @llvm.fma.v16f32({kind} %a, {kind} %a, {kind} %a)
      store {kind} %r, ptr %p
      ret void
    }}"""
    example = host_machine(cpu, features).emit_assembly(llvm.parse_assembly(text))
    machine = platform.machine().lower()
    on_x86, on_arm = machine in ("x86_64", "amd64"), machine in ("aarch64", "arm64")
    mode = "soft" if name == "portable" or not (on_x86 or on_arm) else "arm" if on_arm else "x86"
    vectors = next((size for register, size in REGISTERS.items() if register in example), NEON)
    mode = "flags" if name == "flags" and mode == "x86" else mode
    return Target(cpu, features, not on_x86 or "vfmadd" in example, mode, vectors)
