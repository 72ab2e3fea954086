"""The ladder of costs and the errors of `tree-sitter-analyzer`, in English and Japanese. Pure."""

import json
import os
from collections.abc import Mapping
from typing import Any, Literal

from agentfs.dialects import toolkit as kit
from agentfs.errors import InvalidArgumentError

Language = Literal["en", "ja"]

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
