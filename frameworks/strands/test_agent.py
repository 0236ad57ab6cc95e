"""An agent of Strands in a host."""

from frameworks.contract import Contract


class TestStrands(Contract):
    """The contract."""

    folder, slug = "strands", "strands-chat"
    told = 'CONFIRMATION_FAILED: Approve "pay"? Input: {"amount": 7}'
