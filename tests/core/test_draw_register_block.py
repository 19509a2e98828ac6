"""The register block takes work-items of one launch."""

import pytest
from players import A_AND_B, record, recorded

from cypresskit import draw


@pytest.mark.parametrize("item", [(3, 0), (0, 2), (-1, 0), 6, -1])
def test_a_work_item_outside_the_domain_is_refused(item):
    with pytest.raises(ValueError, match=r"no work-item .* in a domain of 3 x 2"):
        record("sgemm_tn", item=item)


def test_a_work_item_of_another_launch_is_refused():
    (one,), (*_, other) = recorded("sgemm_tn", *A_AND_B, (0, 0)), record("sgemm_tn")
    with pytest.raises(ValueError, match="work-items of one launch"):
        draw.register_block(one, other)
