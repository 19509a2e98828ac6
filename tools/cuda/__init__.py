"""What the clock of CUDA kernels (``cypresskit.today.cuda_clock``) has from elsewhere:
``python -m tools.cuda.loops`` makes its machine code anew, ``python -m tools.cuda.record`` its
figures for the products of the record.
"""
