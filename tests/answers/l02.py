"""Lesson 02."""

from answers import given

KERNEL = given("02_why_blocks", "four_by_eight", solution=True)
FETCH = "sample_resource(1)_sampler(1)_aoffimmi(1,0,0) r4, r0.yz00"
