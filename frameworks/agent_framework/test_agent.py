"""An agent of the Agent Framework in a host."""

from frameworks.contract import Contract


class TestAgentFramework(Contract):
    """The contract."""

    folder, slug = "agent_framework", "agent-framework-chat"
    told = "Error: Tool call invocation was rejected by user."
