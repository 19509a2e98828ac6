"""LLVM's target: the machine for which code is generated, this one or another of its kind."""

from functools import cache


@cache
def host_processor() -> tuple[str, str]:
    """LLVM's name of this processor, and its features."""
    import llvmlite.binding as llvm

    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


@cache
def _target():
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple()


def host_machine(name: str = "", features: str = "", opt: int = 2):
    """A new ``TargetMachine`` for the processor of LLVM's ``name``, by default this one; ``opt`` 0 to 3."""
    name, features = (name, features) if name else host_processor()
    return _target().create_target_machine(cpu=name, features=features, opt=opt)
