"""Names of tools and parameters, and values, that models send because of other products."""

import re
import shlex
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any

from agentfs.arguments.parameters import snake_case

# Prefixes of names: the GPT models, Gemini, clients of MCP, item ids such as `rye/file-system/read`.
_NAMESPACES = re.compile(r"(functions|default_api)[.:]|mcp__\w+?__|([\w.-]+/)+")
# Tools of other products, by the method that does the same.
TOOLS = {
    "run": (
        "bash shell exec_command execute exec execute_command run_command run_shell_command run_terminal_cmd "
        "terminal shell_command local_shell"
    ),
    "read": "view read_file view_file open_file cat open fs_read get_file_contents read_text_file",
    "write": (
        "create_file write_file create write_to_file fs_write save_file new_file create_new_file "
        "create_text_file"
    ),
    "edit": (
        "str_replace edit_file replace replace_in_file replace_string_in_file find_and_replace "
        "string_replace search_replace search_and_replace edit_block"
    ),
    "multi_edit": "multi_replace_string_in_file multiedit replace_file_content multi_replace_file_content",
    "append": "append_file append_to_file",
    "delete": "delete_file remove remove_file rm unlink",
    "ls": "list_dir list_directory list_files list dir list_directory_with_sizes",
    "glob": "find_by_name glob_search file_glob_search find_files",
    "grep": (
        "search grep_search search_file_content search_content ripgrep rg search_text search_dir "
        "search_for_pattern"
    ),
    "move": "rename move_file rename_file mv",
    "undo": "undo_edit",
}
_PATHS = {"path": "paths files directories target_directories"}  # the last one is Cursor's
_STEPS = {"steps": "count n num number times num_steps"}
# Other names of parameters of one method, besides those of all methods.
ALIASES_OF: dict[str, dict[str, str]] = {
    "run": {
        "command": "cmd script",
        "cwd": "workdir working_directory work_dir directory dir",
        "background": "run_in_background is_background",
    },
    "read": {"limit": "head"},
    "edit": {"new_string": "content text"},
    "delete": {"recursive": "recurse r"},
    "ls": _PATHS,
    "glob": {"pattern": "name file_mask patterns", **_PATHS},
    "grep": {"multiline": "u", **_PATHS},
    "move": {  # the filesystem server of MCP has `source` and `destination`
        "path": "source src from old_path source_path from_path old_name",
        "to": "destination dest dst target new_path destination_path to_path",
    },
    "undo": {**_STEPS, "paths": "path files file_path"},
    "redo": _STEPS,
    "checkpoint": {"name": "label message title"},
    "rollback": {"to": "name checkpoint checkpoint_name checkpoint_id label id"},
    "replace": {"old_string": "pattern", "expect": "expected_replacements expected_count", **_PATHS},
}
# Other names of parameters of all methods. A name counts only if it is an alias of exactly one
# parameter of the method and not itself the name of a parameter.
ALIASES = {
    "path": (
        "file_path filepath filename file_name file target_file relative_path absolute_path abs_path "
        "directory directory_path dir dir_path dirname folder folder_path target_directory path_name "
        "pathname search_directory search_path relative_workspace_path"
    ),
    "content": "text file_text contents body file_content file_contents new_content code_content",
    "old_string": "old_str old_text old old_content search search_string find target_content",
    "new_string": (
        "new_str new_text new new_content replace replacement replace_with updated replacement_content"
    ),
    "replace_all": "all all_occurrences global replace_all_occurrences allow_multiple",
    "edits": "edit changes replacements edit_list replacement_chunks",
    "pattern": "query regex regexp search search_pattern search_term glob_pattern glob q substring_pattern",
    "glob": "include includes include_pattern file_pattern file_glob glob_pattern globs",
    "type": "file_type file_types filetype filetypes types language lang",
    "output_mode": "mode output output_format",
    "ignore_case": "case_insensitive i insensitive",
    "context": "context_lines lines_of_context",
    "multiline": "multi_line",
    "limit": "max_results head_limit max_lines num_lines line_count max_entries",
    "offset": "skip line_offset",
    "depth": "max_depth",
    "include_ignored": "no_ignore include_gitignored show_ignored",
}
# Parameters that only explain the call, in Claude Code, Codex, Cursor, Windsurf, Cline and others.
EXPLAINING = "description justification explanation tool_summary security_risk task_progress instruction"
_SHELLS = {"sh", "bash", "zsh"}


def plain_name(name: str) -> str:
    """Return the name of a tool in lower snake case, without the prefix of a client or model."""
    return snake_case(_NAMESPACES.sub("", name[:200], count=1))


def method_meant(name: str) -> str:
    """Return the method that a plain name means, or the name itself."""
    return next((method for method, names in TOOLS.items() if name in names.split()), name)


@cache
def aliases_of(method: str) -> Mapping[str, str]:
    """Return the other names of the parameters of a method, separated by spaces."""
    own = ALIASES_OF.get(method, {})
    return {name: f"{ALIASES.get(name, '')} {own.get(name, '')}" for name in (*ALIASES, *own)}


def foreign_arguments(
    method: str, given: Mapping[Any, Any], names: Collection[str], add_coercion: Callable[[str, str], object]
) -> Mapping[Any, Any]:
    """Return the arguments of a method with parameters of these names for those of other products."""
    meant = dict(given)
    for name in sorted(given.keys() & {*EXPLAINING.split()}.difference(names)):
        del meant[name]
        add_coercion(name, "left out")
    if method == "run":
        _read_as_shell(meant, add_coercion)
    if method == "read" and str(meant.get("offset")) == "0":
        meant["offset"] = 1
        add_coercion("offset", "0 as 1")
    return meant


def _read_as_shell(given: dict[Any, Any], add_coercion: Callable[[str, str], object]) -> None:
    """Replace arguments of other shells.

    A command may be a list of words, as of Codex, and its time in milliseconds, as of Claude Code. Each
    command has a shell of its own, so that restarting it, as Anthropic's tool can, does nothing.
    """
    for name in ("command", "cmd"):
        match given.get(name):
            case [str(shell), "-c" | "-lc", str(line)] if shell.rpartition("/")[2] in _SHELLS:
                given[name] = line
            case [str(), *_] as words if all(isinstance(word, str) for word in words):
                given[name] = shlex.join(words)
            case _:
                continue
        add_coercion("command", "words as a command line")
    milliseconds: Any = given.get("timeout_ms")
    if isinstance(milliseconds, (int, float)) and not isinstance(milliseconds, bool):
        given.setdefault("timeout", given.pop("timeout_ms") / 1000)
        add_coercion("timeout", f"timeout_ms={milliseconds} in seconds")
    for name in ("run_in_background", "is_background"):
        if given.get(name) is False:  # the only way of a staged command, whose tool has no `background`
            del given[name]
    if given.pop("restart", None) is True and "command" not in given:
        given["command"] = ":"
        add_coercion("command", "restart as nothing to do")
