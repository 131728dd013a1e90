from tests.reliability.agents.holding_hooks import scene

__all__ = ["scene"]
