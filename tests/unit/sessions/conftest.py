"""What is true of all tests of session stores."""

import pytest

from agentwatch import background


@pytest.fixture(autouse=True, scope="package")
def _nobody_else_has_work():
    """A reader rests as long as other threads have work: here they are those of tests beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(background, "_REST", 0)
        yield
