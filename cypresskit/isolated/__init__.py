"""Run a student's code in a bare process: plain data goes in, plain data comes out.

The process is a new Python with numpy and the public package. Lessons, their checks and reference
solutions are replaced by stubs.

Always: an answer's time, memory and files are limited, and it can't start processes. Nothing that
it returns is executed or unpickled: a message is JSON of numbers, texts, lists and arrays, of
limited size, and a malformed one ends the process.

Only under bubblewrap, as ``cypresskit grade`` requires: the lessons' files, the user's files and
the network are out of reach. In a notebook, an answer that searches the disk for the reference
solution finds it, and gains only a line in its own notebook.

- ``plain`` encodes and decodes such messages.
- ``function_pickle`` serializes a notebook's function with the names that it uses.
- ``runner`` runs in the process; ``teach_stub`` replaces the lessons there. ``repeat_run`` repeats
  the launches of a CUDA kernel.
- ``process`` starts, limits and ends processes. A warm one is forked for each answer.
- ``seccomp`` forbids child processes.
"""

from cypresskit.isolated.plain import Other
from cypresskit.isolated.process import Answer, NoResult, Raised, Refused, call

__all__ = ["Answer", "NoResult", "Other", "Raised", "Refused", "call"]
