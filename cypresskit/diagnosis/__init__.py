"""Find out whether a kernel is correct, and if not, which instruction is at fault.

- ``verification``: is a kernel correct? What all runs found, as one answer (``verify``).
- ``product_run``: run a kernel under all checks at small sizes, and compare C.
- ``at_size``: compare C at the size at which the kernel is timed.
- ``source_facts``: what the source says without a run.
- ``stated_launch``: whether the kernel is launched for what it computes.
- ``outside_reads``: find a loop that fetches outside of an array for too long.
- ``elements``, ``recorded``, ``operands``: what the work-item did that stored an element of C, and
  which elements of A, B and C its registers held.
- ``slices``: follow the element backward from its store, to the products in its sum.
- ``terms``, ``missing``: which of them are correct, and which line to fix; why others are missing.
- ``coordinates``: what set a wrong coordinate of a fetch, or what ended the loop too early.
- ``element_trace``: all of this, for one element.
- ``changed_lines``: which changed line is at fault: without the change, C is correct.
- ``notes``: what was found, as data, and the sentences that say it.
"""
