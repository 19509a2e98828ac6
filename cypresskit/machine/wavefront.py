"""The size of a wavefront."""

WAVEFRONT = 64  # work-items, in compute mode consecutive ones of a workgroup
TILE = 8  # pixels along a side of a wavefront's tile
