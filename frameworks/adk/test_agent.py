"""An agent of the Agent Development Kit in a host."""

import json
from typing import Any

from frameworks.contract import Contract


class TestAdk(Contract):
    """The contract."""

    folder, slug = "adk", "adk-chat"
    told = '{"error": "This tool call is rejected."}'

    def write(self, result: Any) -> str:
        """Return the result of a tool as the model gets it."""
        return json.dumps({"result": result})
