"""Compare the page's answers with the notebook's, to the last digit: every kernel of the catalog as
it is, and random edits of these and of the climb's steps.

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
from cypresskit.editing.answering import JobMemory, answer_job
from cypresskit.editing.steps import STEPS, starter_text
from tools import bench_page
from tools.bench_page.browser import chromium, open_bench, run_python, served
from tools.random_edits import edited

PARTS = ["text", "code", "verdict", "clocks", "replay", "prices"]
SIZES = 64, 200, 512  # at which texts are timed
EDITS = 0, 1, 1, 1, 2, 3  # of a text
#: Has the page's Python answer a job.
TELL = """
import json
import _host
from cypresskit.editing.answering import JobMemory, answer_job

said = []
answer_job(json.loads({job!r}), JobMemory(), said.append)
_host.call(b"tell " + json.dumps(said).encode())
"""
Job = dict[str, Any]
Answers = list[dict[str, Any]]


class Compared(NamedTuple):
    """A job, and what the notebook's Python and the page's answer."""

    job: Job
    here: Answers
    there: Answers

    @property
    def differences(self) -> list[str]:
        """Where the answers differ, and by what."""
        return [*differences(self.here, self.there)]


def catalog_jobs() -> list[Job]:
    """Each kernel of the catalog, as it is, with the terms of an element."""
    return [
        job("kernel", kernel.text, like=name, element=[1, 0])
        for name, kernel in sorted(ck.kernels.items())
    ]


def random_jobs(seed: int, count: int) -> Iterator[Job]:
    """Texts after random edits: of kernels, and of what steps of the climb begin with, ask for and
    compare with.
    """
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
    """A job that asks for all parts of the answer."""
    return {"edit": edit, "text": text, "name": "my.il", "n": n, "parts": PARTS} | more


def answers(job: Job) -> Answers:
    """The answers to a job, as JSON has them."""
    said: Answers = []
    answer_job(job, JobMemory(), said.append)
    return json.loads(json.dumps(said))


def compared(page: Page, job: Job) -> Compared:
    """The answers to a job, here and of an open page."""
    run_python(page, TELL.format(job=json.dumps(job)))
    page.wait_for_function("told.length")
    return Compared(job, answers(job), json.loads(page.evaluate("told.pop()")))


def differences(here: Any, there: Any, place: str = "") -> Iterator[str]:
    """Where two values of JSON differ: the place, what is here, and what is there."""
    if type(here) is type(there) and isinstance(here, dict) and here.keys() == there.keys():
        for name, value in here.items():
            yield from differences(value, there[name], f"{place}.{name}")
    elif isinstance(here, list) and isinstance(there, list) and len(here) == len(there):
        for number, value in enumerate(here):
            yield from differences(value, there[number], f"{place}[{number}]")
    elif here != there:
        yield f"{place}: {here!r} here, {there!r} there"


def main() -> int:
    """Compare as the command line says. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--count", type=int, default=500, help="of random texts (default: 500)")
    parser.add_argument("--seed", type=int, default=1, help="of the random texts (default: 1)")
    given = parser.parse_args()
    jobs = [*catalog_jobs(), *random_jobs(given.seed, given.count)]
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
