"""Names of tools and parameters, and values, that models send because of other products."""

import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from agentfs.arguments.parameters import snake_case

# Prefixes of names: the GPT models, Gemini, clients of MCP, item ids such as `rye/file-system/read`.
_NAMESPACES = re.compile(r"(functions|default_api)[.:]|mcp__\w+?__|([\w.-]+/)+")
_FROM_TO = {  # the filesystem server of MCP has `source` and `destination`
    "path": "source src from old_path source_path from_path old_name",
    "to": "destination dest dst target new_path destination_path to_path",
}
_PATHS = {"path": "paths files directories target_directories"}  # the last one is Cursor's
_STEPS = {"steps": "count n num number times num_steps"}


class Habit(NamedTuple):
    """Names and values for one method besides its own and `ALIASES`; names are separated by spaces.

    Attributes:
        tools: Tools of other products that do the same.
        aliases: Other names of parameters.
        lists: Parameters that also take a list, although the schema shows one text.
        values: Numbers that mean another number, by parameter.
    """

    tools: str = ""
    aliases: Mapping[str, str] = {}
    lists: str = ""
    values: Mapping[str, Mapping[int, int]] = {}


# By method.
HABITS: dict[str, Habit] = {
    "run": Habit(
        "bash shell exec_command execute exec execute_command run_command run_shell_command run_terminal_cmd "
        "terminal shell_command local_shell",
        {
            "command": "cmd script",
            "cwd": "workdir working_directory work_dir directory dir",
            "background": "run_in_background is_background",
        },
    ),
    "read": Habit(
        "view read_file view_file open_file cat open fs_read get_file_contents read_text_file",
        {"limit": "head"},
        values={"offset": {0: 1}},
    ),
    "write": Habit(
        "create_file write_file create write_to_file fs_write save_file new_file create_new_file "
        "create_text_file"
    ),
    "edit": Habit(
        "str_replace edit_file replace replace_in_file replace_string_in_file find_and_replace "
        "string_replace search_replace search_and_replace edit_block",
        {"new_string": "content text"},
    ),
    "multi_edit": Habit(
        "multi_replace_string_in_file multiedit replace_file_content multi_replace_file_content"
    ),
    "append": Habit("append_file append_to_file"),
    "delete": Habit("delete_file remove remove_file rm unlink", {"recursive": "recurse r"}),
    "ls": Habit("list_dir list_directory list_files list dir list_directory_with_sizes", _PATHS, "path"),
    "glob": Habit(
        "find_by_name glob_search file_glob_search find_files",
        {"pattern": "name file_mask patterns", **_PATHS},
        "pattern path",
    ),
    "grep": Habit(
        "search grep_search search_file_content search_content ripgrep rg search_text search_dir "
        "search_for_pattern",
        {"multiline": "u", **_PATHS},
        "path glob type",
    ),
    "move": Habit("rename move_file rename_file mv", _FROM_TO),
    "undo": Habit("undo_edit", {**_STEPS, "paths": "path files file_path"}),
    "redo": Habit("", _STEPS),
    "checkpoint": Habit("", {"name": "label message title"}),
    "rollback": Habit("", {"to": "name checkpoint checkpoint_name checkpoint_id label id"}),
    "replace": Habit(
        "", {"old_string": "pattern", "expect": "expected_replacements expected_count", **_PATHS}, "path glob"
    ),
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
    "type": "file_type filetype types language lang",
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
EXPLAINING = frozenset(
    {
        *("description", "justification", "explanation", "tool_summary"),
        *("security_risk", "task_progress", "instruction"),
    }
)
_SHELLS = {"sh", "bash", "zsh"}


def plain_name(name: str) -> str:
    """Return the name of a tool in lower snake case, without the prefix of a client or model."""
    return snake_case(_NAMESPACES.sub("", name[:200], count=1))


def method_meant(name: str) -> str:
    """Return the method that a plain name means, or the name itself."""
    return next((method for method, habit in HABITS.items() if name in habit.tools.split()), name)


def shell_arguments(
    given: Mapping[Any, Any], add_coercion: Callable[[str, str], object]
) -> Mapping[Any, Any]:
    """Return the arguments of `run` for those of other shells.

    A command may be a list of words, as of Codex, and its time in milliseconds, as of Claude Code. Each
    command has a shell of its own, so that restarting it, as Anthropic's tool can, does nothing.
    """
    meant = dict(given)
    for name in ("command", "cmd"):
        given_words: Any = meant.get(name)
        words: list[Any] = [*given_words] if isinstance(given_words, list) else []
        if words and all(isinstance(word, str) for word in words):
            shell, *options = words[:2]
            is_shell = shell.rpartition("/")[2] in _SHELLS and options in (["-c"], ["-lc"])
            meant[name] = words[2] if is_shell and len(words) == 3 else shlex.join(words)
            add_coercion("command", "words as a command line")
    milliseconds: Any = meant.get("timeout_ms")
    if isinstance(milliseconds, (int, float)) and not isinstance(milliseconds, bool):
        meant.setdefault("timeout", meant.pop("timeout_ms") / 1000)
        add_coercion("timeout", f"timeout_ms={milliseconds} in seconds")
    for name in ("run_in_background", "is_background"):
        if meant.get(name) is False:  # the only way of a staged command, whose tool has no `background`
            del meant[name]
    if meant.pop("restart", None) is True and "command" not in meant:
        meant["command"] = ":"
        add_coercion("command", "restart as nothing to do")
    return meant
