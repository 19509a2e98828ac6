"""Time the kernels that the page opens with, and those that readers type, as it does, so that the
results are cached.
"""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cypresskit.editing.answering import LocalAnswerer
from cypresskit.editing.steps import STEPS
from cypresskit.editing.workbench import workbench
from cypresskit.threads import processors
from tools.bench_page import KERNELS


def kernels() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the texts, "" for what a step opens with, and the workbench's arguments."""
    for name, step in STEPS.items():
        yield "", {"step": name}
        for keeps_comments in (False, True):
            if text := step.with_solution(keeps_comments):
                yield text, {"step": name}
    for launch in KERNELS:
        yield "", {"like": launch.kernel, "n": launch.n}


def answer(text: str, arguments: dict[str, Any]) -> None:
    """Answer a kernel as the page does, without a verdict."""
    with TemporaryDirectory() as folder:
        path = Path(folder, f"{arguments.get('step', 'kernel')}.il")
        if text:
            path.write_text(text, encoding="utf-8")
        job = workbench(path, **arguments).conversation.job(("code", "clocks", "costs"))
        LocalAnswerer(lambda message: None).ask(job)


if __name__ == "__main__":
    texts, each = zip(*kernels())
    with ProcessPoolExecutor(processors()) as pool:
        list(pool.map(answer, texts, each))
