import difflib

from hypothesis import given
from hypothesis import strategies as st

from agentfs.text.nearest import closest

NAMES = st.text("abcdeé_.", max_size=12)


@given(NAMES, st.lists(NAMES, max_size=20, unique=True), st.sampled_from([0.5, 0.6, 0.75]))
def test_the_closest_names_equal_those_of_difflib(name, names, cutoff):
    def ratios(found):
        return [difflib.SequenceMatcher(None, each, name).ratio() for each in found]

    assert ratios(closest(name, names, 3, cutoff)) == ratios(
        difflib.get_close_matches(name, names, 3, cutoff)
    )


def test_equally_close_names_keep_their_order():
    assert closest("reed", ["read", "redo"], 1, 0.5) == ["read"]
    assert closest("reed", ["redo", "read"], 2, 0.5) == ["redo", "read"]


def test_one_typo_is_found_among_many_similar_names():
    names = [f"test_module_{number:04d}.py" for number in range(5000)]
    assert closest("test_modlue_0042.py", names, 1, 0.75) == ["test_module_0042.py"]
