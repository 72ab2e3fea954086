"""Other names of parameters of the methods of a workspace."""

import re

# A name counts only if it is an alias of exactly one parameter of the method and not itself the name of a
# parameter.
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


def snake_case(name: str) -> str:
    """Return a name in lower snake case: `filePath`, `file-path` and `-C` as `file_path` and `c`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name[:80]).replace("-", "_").strip("_ ").lower()
