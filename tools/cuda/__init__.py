"""A clock for CUDA kernels on GPUs of today, on trial: a kernel is traced, put into the order of
its machine code, and run on the timing engine of the package with the units of an H200.

``clock.simulate`` is its only door. ``python -m tools.cuda.record`` holds it against the package's
record, ``python -m tools.cuda.loops`` makes the machine code anew. It is no part of the package,
whose figures of Cypress keep to 5 %: see docs/model.md for how far this one is off.
"""
