"""A student's code in a bare process, which is handed cases and hands back plain data.

The process is a new Python. It has numpy and the public package, but no lesson, no check and no
right answer; ``cypresskit.teach`` can't be imported there. Nothing that comes back is executed or
unpickled: a message is JSON of numbers, texts, lists and arrays, below a limit of size, and one
that is malformed ends the process.

- ``plain`` writes values as such messages, and reads them.
- ``carry`` takes a function of a notebook along, with the names that it uses.
- ``runner`` is what the process runs; ``classroom`` is what stands there for the lessons.
- ``process`` starts, limits and ends it. On Linux one warm process is forked for each answer;
  elsewhere each answer has a new Python.
"""

from cypresskit.isolated.plain import Other
from cypresskit.isolated.process import Answer, Lost, Raised, Refused, call

__all__ = ["Answer", "Lost", "Other", "Raised", "Refused", "call"]
