"""Find out whether a kernel is correct, and if not, which instruction is at fault.

- ``verification``: run a kernel under all checks, and compare C; ``at_size``, where it is timed.
- ``source_facts``: what its source says without a run; ``outside_reads``: a loop that is overlong.
- ``elements``, ``recorded``, ``operands``: what the work-item did that stored an element of C, and
  which elements of A, B and C its registers held.
- ``slices``: follow the element backward from its store, to the products in its sum.
- ``terms``, ``missing``: which of them are right, and which line to fix; why others are missing.
- ``coordinates``: what set a wrong coordinate of a fetch, or what ended the loop too early.
- ``element_trace``: all of this, for one element.
- ``notes``: what was found, as data, and the sentences that say it.
"""
