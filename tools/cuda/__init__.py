"""Measurements of a GPU (``experiments``), and random products compared with the clock
(``products``, without a GPU). ``python -m tools.cuda.record`` makes the record's modeled speeds and
the stored code.
"""
