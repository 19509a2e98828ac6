"""Answers the workbench where there is no server: runs in the reader's browser, in Pyodide's core.

It gives the parts "text" and "code" of ``cypresskit.editing.protocol``: those that need neither
data nor a clock. Answers come one by one, so that the worker around it can leave the rest out once
a newer text is there.
"""

import json
from collections.abc import Iterator
from typing import Any

from cypresskit.editing import pure_answers

Message = dict[str, Any]


class Session:
    """One reader's kernel: its name, and the code of the edit before this one."""

    def __init__(self) -> None:
        self.name = "kernel.il"
        self.before: list = []

    def receive(self, message: str) -> Iterator[str]:
        """The answers to a message of the page, each as JSON."""
        asked = json.loads(message)
        if asked["type"] == "open":
            self.name, self.before = f"{asked['like']}.il", []
        if asked["type"] == "text":
            yield from map(json.dumps, self.answer(asked["edit"], asked["text"]))

    def answer(self, edit: str, text: str) -> Iterator[Message]:
        """The parts of the answer to a text."""
        common = {"type": "answer", "edit": edit}
        answer, program = pure_answers.text_answer(text, self.name)
        yield {**common, "part": "text", **answer}
        if program is None:
            return

        answer, _, signatures = pure_answers.code_answer(program, self.before)
        if signatures:
            self.before = signatures
        yield {**common, "part": "code", **answer}
