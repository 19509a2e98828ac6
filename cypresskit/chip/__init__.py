"""The simulated chip: what wavefronts do, clause by clause, and how long the units take for it.

``work`` is the input: the clauses of each wavefront, with the cache lines that they request.
``engine`` simulates them, with a file for each of its ``units``.
Inner loops are ``native`` code.
"""
