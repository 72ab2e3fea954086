"""A change that leaves JSON, TOML or YAML unreadable says so, if the file was readable before."""

import pytest

from agentfs import Edit

FILES = {
    "package.json": ('{\n  "a": 1,\n  "b": 2\n}\n', "1,", "1", "JSON: Expecting ',' delimiter: line 3"),
    "pyproject.toml": ("a = 1\nb = 2\n", "b = 2", "b = ", "TOML: Invalid value (at line 2"),
    "ci.yaml": ("a:\n  - b: [1, 2]\n", "2]", "2", "YAML: "),
    "X.YML": ("a: 1\nb: 2\n", "b: 2", "\tb: 2", "YAML: found "),
}  # fmt: skip
WAYS = {
    "edit": lambda ws, path, old, new, text: ws.edit(path, old, new),
    "preview": lambda ws, path, old, new, text: ws.edit(path, old, new, preview=True),
    "multi_edit": lambda ws, path, old, new, text: ws.multi_edit(path, [Edit(old, new)]),
    "write": lambda ws, path, old, new, text: ws.write(path, text.replace(old, new), overwrite=True),
    "replace": lambda ws, path, old, new, text: ws.replace(old, new),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", FILES)
def test_regression_a_change_that_breaks_a_data_file_is_told(ws, tmp_path, path, way):
    """A notebook was refused, and package.json was broken without a word."""
    text, old, new, problem = FILES[path]
    (tmp_path / path).write_text(text)
    result = WAYS[way](ws, path, old, new, text)
    [warning] = [note for note in result.notes if note.startswith("warning")]
    assert f'"{path}" is no longer valid {problem}' in warning
    assert "\n" not in warning
    assert warning in result.text
    if way != "preview":
        assert (tmp_path / path).read_text() == text.replace(old, new)


@pytest.mark.parametrize("path", FILES)
def test_an_append_that_breaks_a_data_file_is_told(ws, tmp_path, path):
    (tmp_path / path).write_text(FILES[path][0])
    assert "no longer valid" in ws.append(path, "}\n").text
    assert "no longer valid" not in ws.append(path, "}\n").text, "it was broken before"
    ws.undo()
    ws.undo()
    assert (tmp_path / path).read_text() == FILES[path][0]


@pytest.mark.parametrize("path", [*FILES, "notes.txt", "tsconfig.jsonc"])
def test_nothing_is_said_of_a_good_new_or_large_text(ws, tmp_path, path):
    text = FILES.get(path, ("{a: ", "", "", ""))[0]
    assert "valid" not in ws.write(path, "{[").text, "a new file"
    (tmp_path / path).write_text(text)
    assert "valid" not in ws.append(path, "\n").text
    (tmp_path / path).write_text(text + "\n" * 100_000)
    assert "valid" not in ws.append(path, "]").text


def test_deep_json_and_yaml_with_tags_and_several_documents_are_valid(ws, tmp_path):
    (tmp_path / "deep.json").write_text("[1]")
    assert "valid" not in ws.write("deep.json", "[" * 50_000 + "]" * 50_000, overwrite=True).text
    (tmp_path / "a.yml").write_text("a: !Ref b\n---\nc: 1\n")
    assert "valid" not in ws.edit("a.yml", "c: 1", "c: !Sub 2").text
