import pytest

from agentfs.base import call_context
from agentfs.errors import DeadlineExceededError
from agentfs.text.nearest import closest


def test_the_most_similar_names_come_first():
    assert closest("reads", ["red", "read", "other"], 2, 0.5) == ["read", "red"]
    assert closest("reed", ["other"], 2, 0.5) == []


def test_one_typo_is_found_among_many_similar_names():
    names = [f"test_module_{number:04d}.py" for number in range(5000)]
    assert closest("test_modlue_0042.py", names, 1, 0.75) == ["test_module_0042.py"]


def test_no_name_is_compared_after_the_deadline():
    """One comparison may take a millisecond, and a directory has many names."""
    compared = iter(["one", "two", "three"])
    with call_context.limited(-1), pytest.raises(DeadlineExceededError):
        closest("on", compared, 1, 0.5)
    assert list(compared) == ["two", "three"]
