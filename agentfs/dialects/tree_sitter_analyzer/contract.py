"""The contract of `tree-sitter-analyzer`: parameters, formats and their costs, errors in two languages."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

from agentfs.dialects import toolkit as kit
from agentfs.errors import InvalidArgumentError

Language = Literal["en", "ja"]
FormatName = Literal["total_only", "count_only_matches", "summary_only", "group_by_file", "full"]
MAX_LIMIT = 10_000
MAX_MATCHES = 2000  # of group_by_file and full
_DEFAULT_LIMIT, _DEFAULT_TIMEOUT_MS = 2000, 4000


class _Format(NamedTuple):
    """The budget of a format in tokens, and its arguments of `grep`."""

    budget: int
    options: Mapping[str, Any]


# Only `Limits` bounds the two without a budget.
REPLY_FORMATS: Mapping[FormatName, _Format] = {
    "total_only": _Format(0, {"output_mode": "total"}),
    "count_only_matches": _Format(200, {"output_mode": "count", "limit": MAX_LIMIT}),
    "summary_only": _Format(2000, {"output_mode": "summary", "limit": MAX_LIMIT}),
    "group_by_file": _Format(10_000, {"limit": MAX_MATCHES}),
    "full": _Format(0, {"limit": MAX_MATCHES}),
}


@dataclass(frozen=True, kw_only=True)
class FileFilter:
    """The parameters of list_files.

    Attributes:
        roots: Directories to search, inside the project.
        pattern: Regular expression to be found in the name of a file; with glob, a glob for the whole name.
        glob: Take pattern as a glob.
        types: What to find: f(ile), d(irectory), l(ink), x (executable), e(mpty).
        extensions: Extensions without the dot, such as py.
        exclude: Globs of files and directories to leave out.
        depth: Levels to descend; 1 is what lies in a root itself.
        follow_symlinks: Follow links that lead inside the project.
        hidden: Search names that begin with a dot too.
        no_ignore: Search names that .gitignore leaves out too.
        size: Sizes such as +10M (at least), -1k (at most); M is 10^6 bytes, Mi 2^20.
        changed_within: Only what was changed since: 2d, 90min, or a date.
        changed_before: Only what was changed before: 2weeks, or a date.
        full_path_match: Look for pattern in the path from the project root.
        absolute: No effect: all paths are absolute.
        limit: Most entries to return, up to 10000.
    """

    roots: list[str]
    pattern: str | None = None
    glob: bool = False
    types: list[str] | None = None
    extensions: list[str] | None = None
    exclude: list[str] | None = None
    depth: int | None = None
    follow_symlinks: bool = False
    hidden: bool = False
    no_ignore: bool = False
    size: list[str] | None = None
    changed_within: str | None = None
    changed_before: str | None = None
    full_path_match: bool = False
    absolute: bool = True
    limit: int = _DEFAULT_LIMIT


@dataclass(frozen=True, kw_only=True)
class ContentQuery:
    """The parameters that both searches of contents have.

    Attributes:
        query: Regular expression to search for, or plain text with regex=false.
        regex: Take query as a regular expression.
        fixed_strings: Take query as plain text.
        word: Only whole words.
        case: How letters match; smart ignores case unless query has a capital.
        multiline: Let a match span lines.
        include_globs: Only files that match one of these globs.
        exclude_globs: Globs of files and directories to leave out of the search.
        max_filesize: Size of the largest file to search, up to 200M; M is 2^20 bytes. Default 10M.
        context_before: Lines to show before each match.
        context_after: Lines to show after each match.
        encoding: Codec of files that are not UTF-8 and have no byte order mark, such as shift_jis.
        max_count: Most matching lines of one file.
        timeout_ms: Milliseconds that the search of contents may take, up to 30000.
        total_only: 🎯 Only the number of matches (~10 tokens): how much is there? `partial`: not
            all files were searched.
        count_only_matches: 🎯 Only the number of matches in each file (~50-200 tokens): where is most?
        summary_only: 🎯 Files with a few sample lines (~500-2000 tokens): what is it like?
        group_by_file: 💡 All matches, each file named once (~2000-10000 tokens): for a review.
        optimize_paths: 💡 Name the common start of all paths once: 10-30% fewer tokens of full results, more
            below a long root, less in other formats.
    """

    query: str
    regex: bool = True
    fixed_strings: bool = False
    word: bool = False
    case: Literal["smart", "insensitive", "sensitive"] = "smart"
    multiline: bool = False
    include_globs: list[str] | None = None
    exclude_globs: list[str] | None = None
    max_filesize: str | None = None
    context_before: int | None = None
    context_after: int | None = None
    encoding: str | None = None
    max_count: int | None = None
    timeout_ms: int = _DEFAULT_TIMEOUT_MS
    total_only: bool = False
    count_only_matches: bool = False
    summary_only: bool = False
    group_by_file: bool = False
    optimize_paths: bool = False

    @property
    def format(self) -> FormatName:
        """The requested format; more than one is an error."""
        given: list[FormatName] = [name for name in REPLY_FORMATS if getattr(self, name, False)]
        if len(given) > 1:
            raise own_error("formats", given[0], given=", ".join(given))
        return given[0] if given else "full"


@dataclass(frozen=True, kw_only=True)
class SearchContent(ContentQuery):
    """The parameters of search_content.

    Attributes:
        roots: Directories to search, inside the project.
        files: Files to search, in place of roots.
        follow_symlinks: Follow links that lead inside the project.
        hidden: Search names that begin with a dot too.
        no_ignore: Search names that .gitignore leaves out too.
    """

    roots: list[str] | None = None
    files: list[str] | None = None
    follow_symlinks: bool = False
    hidden: bool = False
    no_ignore: bool = False


@dataclass(frozen=True, kw_only=True)
class FindAndGrep(ContentQuery, FileFilter):
    """The parameters of find_and_grep.

    Attributes:
        types: Which files: f(ile), l(ink), x (executable), e(mpty).
        limit: Most files to search, the first in the order of sort; up to 10000.
        sort: Order of the files: by path, newest first, or largest first.
    """

    limit: Annotated[int, kit.Name("file_limit")] = _DEFAULT_LIMIT
    sort: Literal["path", "mtime", "size"] = "path"


# The stated cost of each format.
COSTS = {
    "total_only": "~10 tokens",
    "count_only_matches": "~50-200 tokens",
    "summary_only": "~500-2000 tokens",
    "group_by_file": "~2000-10000 tokens",
}
_FULL = "~2000-50000+ tokens"

LADDER = f"""\
🎯 RECOMMENDED WORKFLOW (Most Efficient Approach):
1. START with total_only=true for initial count validation ({COSTS["total_only"]})
2. IF more detail needed, use count_only_matches=true for file distribution ({COSTS["count_only_matches"]})
3. IF context needed, use summary_only=true for overview ({COSTS["summary_only"]})
4. ONLY use full results when specific content review is required ({_FULL})
💡 For a review by file, group_by_file=true ({COSTS["group_by_file"]}); optimize_paths=true takes 10-30% \
off full results.
⚠️ total_only, count_only_matches, summary_only and group_by_file exclude one another: set one at most."""

_COST_LADDER = " < ".join(f"{name} {cost}" for name, cost in COSTS.items())
_GUIDE: Mapping[Language, str] = {
    "en": f"💡 Tokens: {_COST_LADDER} < full {_FULL}",
    "ja": f"💡 トークン数の目安: {_COST_LADDER} < 全結果 {_FULL}",
}

# The dialect's own errors: message and hint.
_OWN_MESSAGES: Mapping[str, Mapping[Language, tuple[str, str]]] = {
    "formats": {
        "en": ("{given} exclude one another.", "Set one of them to true, or none for the full results."),
        "ja": (
            "{given} は同時に指定できません。",
            "いずれか一つだけを true にするか、すべて省いてください。",
        ),
    },
    "no_query": {
        "en": ("query is empty.", "Pass the text or regular expression to search for."),
        "ja": ("query が空です。", "検索する文字列か正規表現を指定してください。"),
    },
    "no_place": {
        "en": ("Neither roots nor files is given.", "Pass roots (directories) or files."),
        "ja": ("roots も files も指定されていません。", "roots（ディレクトリ）か files を指定してください。"),
    },
    "two_places": {
        "en": ("Both roots and files are given.", "Pass roots (directories) or files, not both."),
        "ja": ("roots と files の両方が指定されています。", "どちらか一方だけを指定してください。"),
    },
    "no_files": {
        "en": ("types selects nothing that has contents.", "Leave types out, or add f for files."),
        "ja": ("types に内容を持つ種類がありません。", "types を省くか、ファイルを表す f を加えてください。"),
    },
}

# The workspace's errors by their codes; the English message follows in brackets.
_CODES_JA: Mapping[str, tuple[str, str]] = {
    "outside_workspace": (
        "プロジェクトルートの外は参照できません。",
        "ルートからの相対パスを指定してください。",
    ),
    "not_found": ("指定されたパスが見つかりません。", "存在するパスを確認してください。"),
    "not_a_file": ("ファイルではありません。", "ファイルのパスを指定してください。"),
    "not_a_directory": ("ディレクトリではありません。", "ディレクトリのパスを指定してください。"),
    "not_regular": ("通常のファイルではありません。", "別のファイルを指定してください。"),
    "link_loop": ("シンボリックリンクが循環しています。", "別のパスを指定してください。"),
    "invalid_path": ("パスが正しくありません。", "パスの文字を確認してください。"),
    "name_too_long": ("名前が長すぎます。", "パスを短くしてください。"),
    "protected": ("このファイルの内容は保護されています。", "別のファイルを指定してください。"),
    "refused": ("この呼び出しは許可されていません。", "同じ呼び出しを繰り返さないでください。"),
    "encoding": ("文字コードが正しくありません。", "encoding を確認してください。"),
    "invalid_argument": ("引数が正しくありません。", "引数を直して、もう一度呼び出してください。"),
    "invalid_pattern": (
        "パターンが正しくありません。",
        "文字どおりに検索するには fixed_strings=true を指定してください。",
    ),
}
# Advice for patterns other than `query`, which fixed_strings does not cover.
_ESCAPE_JA = "文字どおりに扱う記号の前には \\ を付けてください。"
_OTHER_JA = ("実行できませんでした。", "別の方法を試してください。")

_EXAMPLE: Mapping[Language, str] = {"en": "🎯 Example: ", "ja": "🎯 使用例: "}
_EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    "list_files": {"roots": ["."], "pattern": "*.py", "glob": True, "limit": 100},
    "search_content": {"roots": ["."], "query": "TODO", "total_only": True},
    "find_and_grep": {"roots": ["."], "query": "TODO", "extensions": ["py"], "summary_only": True},
}


def own_error(which: str, argument: str, **values: str) -> InvalidArgumentError:
    """Return an error of `_OWN_MESSAGES` about a parameter."""
    message, hint = (text.format(**values) for text in _OWN_MESSAGES[which]["en"])
    details = {"parameter": argument, "own_error": which, "values": values}
    return InvalidArgumentError(message, hint=hint, details=details)


def language_of_environment() -> Language:
    """Return the language of `AGENTFS_LANGUAGE` or the locale; by default English."""
    names = ("AGENTFS_LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")
    value = next((value for name in names if (value := os.environ.get(name))), "")
    return "ja" if value.lower().startswith(("ja", "japanese")) else "en"


def translated(
    problem: kit.Problem, details: Mapping[str, Any], tool: str, language: Language
) -> kit.Problem:
    """Translate a failure of a tool and add a valid example of the call."""
    code, message, hint = problem
    own = _OWN_MESSAGES.get(str(details.get("own_error", "")))
    if own is not None:
        message, hint = (text.format(**details["values"]) for text in own[language])
    elif language == "ja":
        translation, advice = _CODES_JA.get(code, _OTHER_JA)
        if code == "invalid_pattern" and details.get("parameter") != "query":
            advice = _ESCAPE_JA
        message, hint = f"{translation}（{message}）", f"{advice}（{hint}）" if hint else advice
    lines = [hint, f"{_EXAMPLE[language]}{json.dumps(_EXAMPLES[tool])}"]
    if tool != "list_files" and code in ("invalid_argument", "invalid_pattern"):
        lines.append(_GUIDE[language])
    return kit.Problem(code, f"⚠️ {message}", "\n".join(line for line in lines if line))
