"""Store what LLVM makes of the catalog's kernels, for ``ck.compile(..., by="llvm")`` where there is
no llvmlite, and so that lessons show the same with every version of it.

``python -m tools.llvm_code`` writes ``data/llvm.json`` anew: the catalog's kernels, and the starts
and references of the workbench's steps, as far as they are in single precision. Each is named by
the hash of its IR, with LLVM's version.
"""

import json
import random

import cypresskit as ck
from cypresskit.compiler import CompileError
from cypresskit.compiler.llvm import translated
from cypresskit.compiler.llvm.back_end import STORED, ir_hash, run_llvm
from cypresskit.devices import HD5870
from cypresskit.editing.steps import STEPS, reference_kernel
from cypresskit.il import ILError, assemble
from cypresskit.teach.l03_bundles.order_table import products, reordered


def stored_irs() -> dict[str, str]:
    """Return the IR of each kernel whose code is stored, by its hash."""
    texts = [kernel.text for kernel in ck.kernels.values()]
    for step in STEPS.values():
        texts += [step.starter, reference_kernel(step.reference).text]
    mads = products()
    random.Random(14).shuffle(mads)  # the solution of lesson 03, exercise 4
    texts.append(reordered(mads).text)
    irs = []
    for text in dict.fromkeys(texts):
        try:
            irs.append(translated(assemble(text), HD5870).text)
        except (CompileError, ILError):  # doubles; a text that its reader completes
            continue
    return {ir_hash(ir): ir for ir in irs}


def main() -> None:
    """Write the file."""
    made = {name: run_llvm(ir, name) for name, ir in sorted(stored_irs().items())}
    STORED.write_text(json.dumps(made, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
