"""What a reader of session stores has to promise, as checks that any test runner can call: pytest is not needed.

    import pytest
    from agentwatch.testing import CHECKS

    @pytest.mark.parametrize("check", CHECKS)
    def test_it_is_a_reader(check):
        check(scribe)  # makes a `Store` in a directory that is given

`agentwatch help source` has a whole project with such a test. A check that fails raises AssertionError.
"""

from agentwatch.testing.checks import CHECKS, Build, built
from agentwatch.testing.store import GARBAGE, NOW, Store, Watch, packet, report, spoil_lines, torn

__all__ = ["CHECKS", "GARBAGE", "NOW", "Build", "Store", "Watch", "built", "packet", "report", "spoil_lines", "torn"]
