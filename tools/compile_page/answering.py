"""Answers the workbench where there is no server: runs in the reader's browser, in Pyodide's core.

It gives the parts "text" and "code" of ``cypresskit.editing.protocol``: those that need neither
data nor a clock. Answers come one by one, so that the worker around it can leave the rest out once
a newer text is there.
"""

import json
from collections.abc import Iterator
from typing import Any

from cypresskit.editing import pure_answers
from cypresskit.il import assemble

Message = dict[str, Any]


def warm_up(text: str) -> None:
    """Import all that an answer needs, also one about a fault of ours, and fill the caches: answer
    a kernel's text, and the same with a fault.
    """
    import linecache  # noqa: F401
    import tokenize  # noqa: F401
    import traceback  # noqa: F401

    for kernel in (text, text + "0"):
        for _ in Session().answer("", kernel):
            pass


class Session:
    """One reader's kernel: its name, and the code of the edit before this one.

    Of the catalogue's kernel that it began as: its ``accesses``, its ``turn``, the steps of k in a
    turn of the main loop and their flops, which hold as long as it accesses memory as that did; and
    the ``mads`` of a turn. A loop with another number of multiply-adds is no longer that product,
    and has no speed.
    """

    def __init__(self) -> None:
        self.name = "kernel.il"
        self.before: list = []
        self.accesses: tuple | None = None
        self.turn: tuple[int | None, int | None] = None, None
        self.mads: int | None = None

    def receive(self, message: str) -> Iterator[str]:
        """The answers to a message of the page, each as JSON."""
        asked = json.loads(message)
        if asked["type"] == "open":
            self.name, self.before = f"{asked['like']}.il", []
            own = asked.get("own")
            self.accesses = own and pure_answers.accesses(assemble(own["text"], self.name))
            self.turn = tuple(own["turn"]) if own else (None, None)
            self.mads = own and own["mads"]
        if asked["type"] == "text":
            yield from map(json.dumps, self.answer(asked["edit"], asked["text"]))

    def answer(self, edit: str, text: str) -> Iterator[Message]:
        """The parts of the answer to a text."""
        common = {"type": "answer", "edit": edit}
        answer, program = pure_answers.text_answer(text, self.name)
        yield {**common, "part": "text", **answer}
        if program is None:
            return

        same = self.accesses == pure_answers.accesses(program)
        k_per_iteration, flops = self.turn if same else (None, None)
        answer, _, signatures = pure_answers.code_answer(
            program, self.before, k_per_iteration=k_per_iteration, flops=flops
        )
        if signatures:
            self.before = signatures
        if card := answer.get("card"):
            mads = card["mads"]
            if self.mads is not None and mads != self.mads:
                card["nominal_gflops"] = None
                card["no_speed"] = f"{mads} of {self.mads} multiply-adds left: no speed"
                if mads > self.mads:
                    card["no_speed"] = f"{mads} multiply-adds, not {self.mads}: no speed"
        yield {**common, "part": "code", **answer}
