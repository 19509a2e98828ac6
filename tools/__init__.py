"""Tools for developers, run from a clone:

the fuzzer, builders of notebooks and pages, the oracle.
"""
