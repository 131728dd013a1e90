"""The fixture of golden files."""

from __future__ import annotations

from tests.goldens.golden import golden

__all__ = ["golden"]
