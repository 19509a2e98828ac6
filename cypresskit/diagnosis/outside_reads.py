"""Reads outside of an array that leave C correct, since they give 0: which lines read there."""

from collections import Counter
from dataclasses import dataclass

from cypresskit.diagnosis.notes import Note
from cypresskit.kernels.products import Product
from cypresskit.machine.checks import Findings
from cypresskit.machine.observer import FetchEvent, MemoryEvent, Observer
from cypresskit.tables import named_lines


@dataclass(frozen=True)
class OutsideReads:
    """Reads outside of an array, of a correct kernel.

    Attributes
    ----------
    findings
        Those of ``ck.check``.
    line, runs, inside
        The line that reads outside the most often in a product, how often it runs, and how often it
        reads inside.
    restated
        If nothing is read outside once another k is stated, a note that says so; or None.
    """

    findings: Findings
    line: int
    runs: int
    inside: int
    restated: Note | None

    def __str__(self) -> str:
        lines = sorted({line for found in self.findings for line in (found.line, *found.also)})
        reads = named_lines(lines, "read").capitalize()
        gets = "gets" if len(lines) == 1 else "get"
        cure = self.restated.text if self.restated else ""
        return f"{reads} outside of an array and {gets} 0, which leaves C correct. {cure}".rstrip()

    @property
    def is_overlong(self) -> bool:
        """Whether most of what a loop reads is outside: to time it would take as many times."""
        return self.runs - self.inside > max(1, self.inside // 2)


def outside_reads(given: Product, findings: Findings, restated: Note | None) -> OutsideReads:
    """Run a correct kernel's product, and return its reads outside."""
    reads = _Reads()
    given.run(engine="interpreter", observers=[reads])
    at = max(reads.runs, key=lambda at: reads.runs[at] - reads.inside[at])
    line = given.kernel.program.body[at].line
    return OutsideReads(findings, line, reads.runs[at], reads.inside[at], restated)


class _Reads(Observer):
    """Counts how often each instruction's reads of an array ran, and how often one was inside."""

    def __init__(self) -> None:
        self.runs: Counter[int] = Counter()
        self.inside: Counter[int] = Counter()

    def fetch(self, event: FetchEvent | MemoryEvent) -> None:
        self.runs[event.at] += 1
        self.inside[event.at] += bool((event.inside & event.active).any())

    def memory(self, event: MemoryEvent) -> None:
        if event.space == "global" and not event.store:
            self.fetch(event)
