"""Tools for working on cypresskit, run from a clone: the fuzzer, the notebook and page makers, the
oracle.
"""
