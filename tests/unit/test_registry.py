"""What packages offer to those below them is there under the name that it is asked by."""

from __future__ import annotations

import pytest

from leadline import registry


@pytest.mark.parametrize("what", registry.OFFERED)
def test_what_is_offered_is_there(what: str) -> None:
    assert registry.offered(what) is not None
