"""`with_values` makes a changed copy."""

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError

import pytest

from agentfs.base.frozen_data import with_values
from agentfs.results import Entry


def test_objects_cannot_be_changed_but_compared_copied_and_pickled():
    entry = Entry("a/b", "b", "file", is_dir=False, size=3)
    with pytest.raises(FrozenInstanceError):
        entry.size = 4
    with pytest.raises(FrozenInstanceError):
        del entry.size
    larger = with_values(entry, size=4)
    assert larger == dataclasses.replace(entry, size=4) != entry
    assert copy.deepcopy(entry) == pickle.loads(pickle.dumps(entry)) == entry
    assert len({entry, copy.copy(entry), larger}) == 2
