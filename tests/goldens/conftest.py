"""The fixture of golden files."""

from tests.goldens.golden import golden

__all__ = ["golden"]
