"""Names of tools that mean several things, or no method, and the parts of names that clients add."""

import re

from agentfs.base.advice import NextCall, call
from agentfs.habits.parameter_names import snake_case

_DEFINITION = r"^\s*(export |async |pub )*(class|def|function|interface|fn|func|struct|enum) "
# Names that mean different things in different products, with the calls to propose. Each proposal adds the
# arguments that the model sent.
AMBIGUOUS: dict[str, tuple[NextCall, ...]] = {
    "find": (call("glob"),),  # a regular expression here, a glob in the program `find`
    "find_file": (call("glob"),),
    "file_search": (call("glob"),),  # VS Code takes a glob, Cursor a part of the name
    "search_file": (call("grep"), call("glob")),
    "search_files": (call("grep"), call("glob")),  # contents in Cline and Roo, names in the server of MCP
    "tree": (call("ls", depth=0),),
    "directory_tree": (call("ls", depth=0),),
    "revert": (call("undo"),),
    # Tools that search by meaning, in Cursor, Windsurf and VS Code.
    **dict.fromkeys(("codebase_search", "semantic_search"), (call("grep"),)),
    # Other ways to change a file, whose arguments have no equivalent here.
    **dict.fromkeys(
        (
            *("apply_patch", "apply_diff", "patch", "replace_lines", "delete_lines", "replace_symbol_body"),
            *(
                "insert",
                "insert_line",
                "insert_edit_into_file",
                "insert_content",
                "notebook_edit",
                "edit_notebook",
            ),
            "edit_notebook_file",
        ),
        (call("edit"),),
    ),
    "get_file_info": (call("ls"),),
    "list_code_definition_names": (call("grep", pattern=_DEFINITION),),  # Cline, Roo
}
# Tools whose `command` names the action: Anthropic's text editor, SWE-agent, OpenHands.
EDITORS = ("str_replace_based_edit_tool", "str_replace_editor", "text_editor")
# Prefixes of names: the GPT models, Gemini, clients of MCP, item ids such as `rye/file-system/read`.
_NAMESPACES = re.compile(r"(functions|default_api)[.:]|mcp__\w+?__|([\w.-]+/)+")


def plain_name(name: str) -> str:
    """Return the name of a tool in lower snake case, without the prefix of a client or model."""
    return snake_case(_NAMESPACES.sub("", name[:200], count=1))
