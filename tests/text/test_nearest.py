from agentfs.text.nearest import closest


def test_the_most_similar_names_come_first():
    assert closest("reads", ["red", "read", "other"], 2, 0.5) == ["read", "red"]
    assert closest("reed", ["other"], 2, 0.5) == []


def test_one_typo_is_found_among_many_similar_names():
    names = [f"test_module_{number:04d}.py" for number in range(5000)]
    assert closest("test_modlue_0042.py", names, 1, 0.75) == ["test_module_0042.py"]
