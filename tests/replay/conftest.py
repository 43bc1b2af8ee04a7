"""For all tests of replay."""

from __future__ import annotations

import pytest

from tests.replay import children


@pytest.fixture(autouse=True)
def _children_before() -> None:
    children.note_children()
