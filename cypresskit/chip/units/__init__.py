"""The units of the chip, one file each, as native code.

A unit's functions get what they may touch: ``jobs`` (which clause each wavefront slot is at, and
what it requests; only ``sequencer`` and ``dispatch`` write it), the unit's own state
(``units.state``), and the memory that it accesses.
``alu``, ``texture`` and ``store_path`` run one clause each; ``sequencer`` steps through clauses and
holds barriers; ``dispatch`` fills slots; ``l2``, ``dram`` and ``cache`` are the memory.
``chip.engine`` calls these in the order of time. ``lds_banks`` counts bank conflicts, before a
simulation: the trace of a launch has them as clocks of its ALU clauses.
"""
