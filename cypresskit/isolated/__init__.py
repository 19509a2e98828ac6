"""Run a student's code in a bare process: plain data goes in, plain data comes out.

The process is a new Python with numpy and the public package. Lessons, their checks and reference
solutions are replaced by stubs.

Always, on Linux: an answer's time, memory and files are limited, and on x86-64 and Arm it can't
start processes. Nothing that it returns is executed or unpickled: a message is JSON of
numbers, texts, lists and arrays, of limited size, and a malformed one ends the process.

Only under bubblewrap, as ``cypresskit grade`` requires: the lessons' files, the user's files and
the network are out of reach. In a notebook, an answer that searches the disk for the reference
solution finds it, and gains only a line in its own notebook.

- ``answer`` calls an answer, and says what became of it.
- ``plain`` encodes and decodes the messages.
- ``serving`` runs a notebook's cells, and the answer that they make; ``teach_stub`` replaces the
  lessons there, but for a lesson's folder ``visible``.
- ``process`` starts and ends processes; ``runner`` is their program, which limits them. A warm one
  is forked for each answer. ``seccomp`` forbids child processes.
- ``here`` judges in this process, in a browser.
"""

from cypresskit.isolated.answer import Answer, NoResult, Raised, call
from cypresskit.isolated.plain import Other
from cypresskit.isolated.serving import Refused

__all__ = ["Answer", "NoResult", "Other", "Raised", "Refused", "call"]
