"""CUDA kernels on a GPU: ``experiments`` measures the record of the package, ``products`` compares
random products with the clock. ``python -m tools.cuda.record`` makes the record's modeled speeds
and the stored code.
"""
