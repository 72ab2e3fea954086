"""Messages of `connect` that no side of ours sends are errors of the protocol."""

import pytest

from agentfs.remote.wire import ProtocolError, from_wire


@pytest.mark.parametrize(
    "wrap", [lambda value: [value], lambda value: {"a": value}, lambda value: {"$": [value]}]
)
def test_a_deep_message_is_an_error_of_the_protocol(wrap):
    value = 1
    for _ in range(100):
        value = wrap(value)
    with pytest.raises(ProtocolError, match="nested too deeply"):
        from_wire(value)
