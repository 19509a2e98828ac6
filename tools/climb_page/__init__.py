"""Build the site's first page: one page, from 45 to 2,014 Gflop/s, whose kernels run.

``write`` writes ``index.html`` and what it needs into a folder. Its text is ``page.md``, with
expressions in place of numbers. Every number, diff and picture is computed from the package's
kernels (``kernels``, ``numbers``, ``pictures``), and so are the answers to what it asks
(``riddles``). ``page`` puts them together.
"""

from tools.climb_page.page import write

__all__ = ["write"]
