"""A student's code in a bare process, which is handed cases and hands back plain data.

The process is a new Python. It has numpy and the public package; in the place of the lessons, their
checks and right answers it finds stand-ins. Two walls differ in what they keep off. Always: an
answer's time, memory and files are limited, it starts no process, and nothing that comes back is
executed or unpickled: a message is JSON of numbers, texts, lists and arrays, below a limit of
size, and one that is malformed ends the process. Under bubblewrap alone, as ``cypresskit grade``
asks for: the files of the lessons aren't there, nor the user's, nor a network. In a notebook an
answer that looks for the right one on disk finds it, and earns a line in its own notebook.

- ``plain`` writes values as such messages, and reads them.
- ``carry`` takes a function of a notebook along, with the names that it uses.
- ``runner`` is what the process runs; ``teach_stub`` is what stands there for the lessons.
- ``process`` starts, limits and ends it: one warm process is forked for each answer.
- ``alone`` keeps it from starting others.
"""

from cypresskit.isolated.plain import Other
from cypresskit.isolated.process import Answer, NoResult, Raised, Refused, call

__all__ = ["Answer", "NoResult", "Other", "Raised", "Refused", "call"]
