"""Random programs and launches, and the laws that hold for them: `make fuzz` tries new ones.

- `programs` (with `grammar`) writes valid programs; `engines` runs one on all engines, which must
  give the same bits. `guards` ends the process at an access out of range.
- `law` has launches on any board, and what their reports must obey.
- `samples` has launches that are partly simulated, and how far their times may be off.

The tests that call them draw from a parameter ``seed``: tests/core/test_fuzz.py and others.
"""
