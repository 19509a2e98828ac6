"""Time the kernels that the page opens with, and those that readers type, as it does, so that the
results are cached.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from cypresskit.editing.answering import AnswerHere
from cypresskit.editing.steps import STEPS, reference_kernel
from cypresskit.editing.workbench import workbench
from tools.bench_page import KERNELS

with TemporaryDirectory() as folder:
    benches = [workbench(Path(folder, f"{name}.il"), step=name) for name in STEPS]
    for name, step in STEPS.items():
        for text in step.typed:
            path = Path(folder, f"{len(benches)}.il")
            path.write_text(text, encoding="utf-8")
            benches.append(workbench(path, step=name))
    for launch in KERNELS:
        path, kernel = Path(folder, f"{launch.kernel}.il"), reference_kernel(launch.kernel)
        benches.append(workbench(path, like=kernel, n=launch.n))
    for bench in benches:
        job = bench._conversation.job(("code", "clocks", "costs"))
        AnswerHere(lambda message: None).ask(job)
