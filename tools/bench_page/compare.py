"""Compare the answers of the workbench page's Python with those of this Python, to the last digit:
for the catalog's kernels, and for random edits of them and of the climb's steps.

    python -m tools.bench_page.compare --count 500 --seed 1

It prints the texts whose answers differ, and exits with 1 if there are any.
"""

import argparse
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from playwright.sync_api import Page

import cypresskit as ck
from cypresskit.editing.answering import AnswerHere
from cypresskit.editing.steps import STEPS, starter_text
from tools import bench_page
from tools.bench_page.browser import chromium, open_bench, run_python, served
from tools.random_edits import edited

PARTS = ["text", "code", "verdict", "clocks", "replay", "costs"]
SIZES = 64, 200, 512  # n, at which kernels are timed
EDITS = 0, 1, 1, 1, 2, 3  # per text, at random
#: A program with which the page's Python answers a job.
REPORT = """
import json
import _host
from cypresskit.editing.answering import AnswerHere

messages = []
AnswerHere(messages.append).ask(json.loads({job!r}))
_host.call(b"report " + json.dumps(messages).encode())
"""
Job = dict[str, Any]
Answers = list[dict[str, Any]]


class Compared(NamedTuple):
    """A job, and the answers of Python here and of the page's Python."""

    job: Job
    here: Answers
    there: Answers

    @property
    def differences(self) -> list[str]:
        """The places at which the answers differ, with both values."""
        return [*differences(self.here, self.there)]


def catalog_jobs() -> list[Job]:
    """Return a job for each kernel of the catalog, unchanged, and an element of C to replay."""
    return [
        job("kernel", kernel.text, like=name, element=[1, 0])
        for name, kernel in sorted(ck.kernels.items())
    ]


def random_jobs(seed: int, count: int) -> Iterator[Job]:
    """Yield jobs for randomly edited kernels: of the catalog, and of the climb's steps."""
    rng = random.Random(seed)
    for number in range(count):
        size = rng.choice(SIZES)
        if rng.random() < 0.5:
            like, step = rng.choice(sorted(ck.kernels)), None
            text = ck.kernels[like].text
        else:
            step = rng.choice(sorted(STEPS))
            like = STEPS[step].like
            text = rng.choice(
                [STEPS[step].starter, *map(starter_text, (STEPS[step].reference, like))]
            )
        yield job(str(number), edited(text, rng, rng.choice(EDITS)), like=like, n=size, step=step)


def job(edit: str, text: str, n: int = SIZES[1], **more: Any) -> Job:
    """Return a job that requests all parts of the answer."""
    return {"edit": edit, "text": text, "name": "my.il", "n": n, "parts": PARTS} | more


def answers(job: Job) -> Answers:
    """Answer a job here. Return the answers after a round trip through JSON."""
    messages: Answers = []
    AnswerHere(messages.append).ask(job)
    return json.loads(json.dumps(messages))


def compared(page: Page, job: Job) -> Compared:
    """Answer a job here and on an open page."""
    run_python(page, REPORT.format(job=json.dumps(job)))
    page.wait_for_function("reports.length")
    return Compared(job, answers(job), json.loads(page.evaluate("reports.pop()")))


def differences(here: Any, there: Any, place: str = "") -> Iterator[str]:
    """Yield each place at which two values of JSON differ, with both values."""
    if type(here) is type(there) and isinstance(here, dict) and here.keys() == there.keys():
        for name, value in here.items():
            yield from differences(value, there[name], f"{place}.{name}")
    elif isinstance(here, list) and isinstance(there, list) and len(here) == len(there):
        for number, value in enumerate(here):
            yield from differences(value, there[number], f"{place}[{number}]")
    elif here != there:
        yield f"{place}: {here!r} here, {there!r} there"


def main() -> int:
    """Run the command. Return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--count", type=int, default=500, help="random texts (default: 500)")
    parser.add_argument("--seed", type=int, default=1, help="of the random texts (default: 1)")
    options = parser.parse_args()
    jobs = [*catalog_jobs(), *random_jobs(options.seed, options.count)]
    differing = 0
    parts = dict.fromkeys(PARTS, 0)
    with TemporaryDirectory() as folder, chromium() as browser:
        bench_page.write_page(Path(folder))
        with served(Path(folder)) as address:
            page = browser.new_page()
            open_bench(page, address)
            for each in jobs:
                both = compared(page, each)
                for answer in both.here:
                    if answer["type"] == "answer":
                        parts[answer["part"]] += 1
                if found := both.differences:
                    differing += 1
                    print(json.dumps(each), *found[:5], sep="\n", flush=True)
    print(f"{differing} of {len(jobs)} texts differ. Compared: {parts}")
    return bool(differing)


if __name__ == "__main__":
    sys.exit(main())
