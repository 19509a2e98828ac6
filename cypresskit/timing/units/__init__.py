"""The units of the chip, one file each, as native code on the shared state of ``units.state``.

``alu``, ``texture``, ``store_path`` and, of barriers, ``sequencer`` take a wavefront's clause and
say when it is over; ``dispatch`` brings wavefronts to the SIMD engines; ``l2``, ``dram`` and
``cache`` are the memory behind them; ``lds_banks`` counts bank conflicts. ``timing.engine`` asks
them in the order of time.
"""
