"""Run a student's code in a process of its own, which gets cases and returns plain data.

The process is a new Python with numpy and the public package. Stubs replace the lessons, their
checks and right answers. Two levels of isolation:

- Always: time, memory and files are limited, the code starts no process, and nothing that it
  returns is executed or unpickled. A message is JSON of numbers, texts, lists and arrays of limited
  size; a malformed one ends the process.
- Under bubblewrap, which ``cypresskit marks`` requires: neither the lessons' files nor the user's
  are there, and no network. In a notebook, which has no bubblewrap, an answer can find the right
  one on disk, and only its own notebook shows it as right.

Modules:

- ``process`` starts, limits and ends the process: one warm process is forked for each answer.
- ``runner`` is the program of the process; ``teach_stub`` replaces the lessons in it.
- ``plain`` encodes values as messages and decodes them.
- ``function_pickle`` pickles a notebook's function with the names that it uses.
- ``seccomp`` forbids the process to start others.
"""

from cypresskit.isolated.plain import Other
from cypresskit.isolated.process import Answer, Lost, Raised, Refused, call

__all__ = ["Answer", "Lost", "Other", "Raised", "Refused", "call"]
