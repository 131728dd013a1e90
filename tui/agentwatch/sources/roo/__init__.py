"""Roo Code."""
