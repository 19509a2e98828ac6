"""Reads outside of an array that leave C correct, since they give 0: which lines read there, and
what their runs say of the loop.
"""

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
    longer_iteration
        If they come from an iteration that takes more values of k than it is launched for, a note
        that says so; or None.
    """

    findings: Findings
    line: int
    runs: int
    inside: int
    longer_iteration: Note | None

    def __str__(self) -> str:
        lines = sorted({line for found in self.findings for line in (found.line, *found.also)})
        reads = named_lines(lines, "read").capitalize()
        gets = "gets" if len(lines) == 1 else "get"
        why = self.longer_iteration.text if self.longer_iteration else self.loop_advice
        return f"{reads} outside of an array and {gets} 0, which leaves C correct. {why}".rstrip()

    @property
    def loop_advice(self) -> str:
        """What the runs of a line that only read outside say of its loop, or ""."""
        side = "begins{} too early" if self.findings[0].before else "ends{} too late"
        if self.runs == self.inside:
            return ""
        if self.runs - self.inside == 1:
            return f"Perhaps the loop {side.format(' an iteration')}."
        return (
            f"Line {self.line} reads inside in {self.inside} of {self.runs} runs: the loop"
            f" {side.format('')}."
        )

    @property
    def is_overlong(self) -> bool:
        """Whether most of what a loop reads is outside: to time it would take as many times."""
        return self.runs - self.inside > max(1, self.inside // 2)


def outside_reads(
    given: Product, findings: Findings, longer_iteration: Note | None
) -> OutsideReads:
    """Run a correct kernel's product, and return its reads outside."""
    reads = _Reads()
    given.run(engine="interpreter", observers=[reads])
    at = max(reads.runs, key=lambda at: reads.runs[at] - reads.inside[at])
    line = given.kernel.program.body[at].line
    return OutsideReads(findings, line, reads.runs[at], reads.inside[at], longer_iteration)


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
