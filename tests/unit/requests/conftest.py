from tests.unit.requests.asked import place

__all__ = ["place"]
