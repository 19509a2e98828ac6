"""Define the size of a wavefront, which is the same on all boards."""

WAVEFRONT = 64  # work-items, in compute mode consecutive ones of a workgroup
TILE = 8  # pixels along a side of a wavefront's tile
