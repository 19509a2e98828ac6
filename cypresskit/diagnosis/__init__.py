"""Find out whether a kernel is correct, and if not, which instruction is at fault.

- ``verification``: run a kernel under all checks, and compare C.
- ``slices``: follow an element of C backward from its store, to the products in its sum.
- ``element_trace``: which of them are right, and which line to fix.
- ``notes``: what was found, as data, and the sentences that say it.
"""
