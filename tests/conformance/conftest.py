import pytest

pytest.register_assert_rewrite("redrive.testing.conformance")
