"""The demo: a believable session of two minutes, played into a temporary workspace."""

from agentwatch.demo.screenplay import demo_script
from agentwatch.demo.session import DemoSession

__all__ = ["DemoSession", "demo_script"]
