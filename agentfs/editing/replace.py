"""`replace`: change a text or a pattern in many files, all or none.

The files are found as `grep` finds them. Each is changed in memory, then all are written as one batch.
"""

import re
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from agentfs.base import call_context
from agentfs.base.advice import Advice, FirstOf, Joined, ParameterName, Retry, plural, shortened
from agentfs.base.frozen_data import with_values
from agentfs.base.visible import one_line
from agentfs.editing.after_change import finish, warnings_of
from agentfs.editing.commit import SINCE_SHOWN, ExternalChanges, external_changes, record
from agentfs.editing.draft import Draft, FileEdit, check_size
from agentfs.editing.edit import check_count, check_edit, check_expect
from agentfs.editing.match import NEW, OLD
from agentfs.editing.rendering import MOST_NAMED, error_of_many
from agentfs.errors import (
    AccessError,
    AgentFSError,
    ContentError,
    DeadlineExceededError,
    InvalidArgumentError,
    InvalidPatternError,
    NoChangeError,
    NoMatchError,
    NotFoundError,
    TooLargeError,
)
from agentfs.fs import Change, Current, FileNode, quote, revision_of
from agentfs.fs.oserrors import read_only
from agentfs.history.database import Contents
from agentfs.history.log import LinesBy
from agentfs.history.report import changed_meanwhile, patch_lines
from agentfs.limits import Limits
from agentfs.patterns.line_search import LineSearch
from agentfs.patterns.syntax import MAX_CHARACTERS, has_character
from agentfs.results import Edit, ReplaceResult
from agentfs.search.grep import SearchResult
from agentfs.search.grep_text import search_for
from agentfs.search.left_out import skip_report
from agentfs.search.options import GrepOptions, OneOrMore, as_list, paths_of
from agentfs.search.second_look import Reading, second_look
from agentfs.shown.workspace_context import Context, watched
from agentfs.text.display import first_names, fitted, footer, notes_of, with_text
from agentfs.text.lines import Replacement

MAX_FILES = 10_000
# Parameters that other readings change, by their name in grep.
_OWN_NAMES = {"pattern": "old_string", "ignore_case": "old_string", "fixed_strings": "regex"}
MAX_DIFF_CHARS = 16 * 1024 * 1024  # of all files together, because a permission callback gets the whole diff
_NARROW = Advice(
    "Name a smaller directory as ", ParameterName("path", quoted=True), ", or pass a narrower ",
    ParameterName("glob", quoted=True), ".",
)  # fmt: skip
_MOST_EXPANDED = 8  # how many times larger than a file the expanded template of one match may be
_GLOB_SPECIAL = re.compile(r"([\\*?\[\]{}!])")


class ReplaceOptions(NamedTuple):
    """The arguments of `Workspace.replace`."""

    old_string: str
    new_string: str
    path: OneOrMore = "."
    glob: OneOrMore | None = None
    expect: int | None = None
    word: bool = False
    regex: bool = False
    preview: bool = False

    @property
    def search(self) -> GrepOptions:
        """The search for the files. If the text is too long for a pattern, its longest line is searched."""
        text = self.old_string if self.regex else self.old_string.replace("\r\n", "\n")
        if not self.regex and not self.word and len(text) > MAX_CHARACTERS:
            text = max(text.split("\n"), key=len)[:MAX_CHARACTERS] or "\n"
        return GrepOptions(
            pattern=text,
            path=self.path,
            glob=self.glob,
            output_mode="count",
            multiline=has_character(text, "\n") if self.regex else "\n" in text,
            limit=MAX_FILES,
            fixed_strings=not self.regex,
            word=self.word,
        )


class _File(NamedTuple):
    """An edit that is not yet written; its contents are loaded from a store."""

    path: str
    change: Change
    replacements: int
    diff: str
    edit: FileEdit | None  # if the file is in the read history
    external: ExternalChanges | None
    by_others: tuple[LinesBy, ...]
    notes: tuple[str, ...]


def replace_in_files(context: Context, options: ReplaceOptions) -> ReplaceResult:
    """Replace a text or a pattern in all files that contain it, all or none."""
    root, _, limits, _ = context
    check_expect(options.expect)
    if not options.regex:
        check_edit(Edit(options.old_string, options.new_string))
    if root.policy.read_only:
        raise read_only()
    given = options.search
    try:
        pattern = given.compile(captures=True)
        wanted, found, glob_note = watched(search_for)(context, given)
    except InvalidPatternError as error:
        raise _about_old_string(error) from None
    matcher = LineSearch(pattern, call_context.deadline()) if options.regex or options.word else None
    try:
        _check_complete(found)
        files = _changed_files(context, options, matcher, found)
    except AgentFSError:
        raise
    except TimeoutError:
        raise DeadlineExceededError(
            f"The search did not finish within {limits.timeout:g} seconds; nothing was changed.",
            hint=_NARROW,
            details={"seconds": limits.timeout},
        ) from None
    if not files:
        raise _nothing_found(context, options, wanted, glob_note, found)
    counts = {file.path: file.replacements for file in files}
    total, where = sum(counts.values()), plural(len(files), "file")
    if options.expect is not None:
        check_count(options.expect, total, where, files=counts, places=_count_lines(files, MOST_NAMED))
    changes = [file.change for file in files]
    notes: list[str] = []
    if options.preview:
        root.judge(changes)
    else:
        conflict = partial(changed_meanwhile, root=root)
        by_others = tuple(lines for file in files for lines in file.by_others)
        log_step = root.log_step(by_others=by_others)
        notes += root.apply(changes, max_bytes=limits.file_bytes, conflict=conflict, log_step=log_step).notes
        with call_context.uncounted():  # the files are replaced, so the deadline no longer ends the call
            for file in files:
                if file.edit is not None:
                    record(context, file.edit, revision_of(file.edit.data), file.external)
    notes += (note for file in files for note in file.notes)
    notes += notes_of(glob_note, skip_report(found.skipped, can_open=False))
    diff = "".join(file.diff for file in files)
    result = ReplaceResult(counts, total, diff, found.skipped, notes=tuple(notes))
    done = "Preview, nothing was written: would replace" if options.preview else "Replaced"
    head = f"{done} {plural(total, 'occurrence')} in {where}:"
    shown = patch_lines(diff.encode("utf-8", "surrogatepass")) if options.preview else []

    def render(most: int) -> ReplaceResult:
        return with_text(result, head, above=_count_lines(files, most), below=shown)

    return fitted(limits, (len(files), render))


def _changed_files(
    context: Context, options: ReplaceOptions, matcher: LineSearch | None, found: SearchResult
) -> list[_File]:
    """Return the change of each file; raise an error if one of the files cannot be changed."""
    root, tracker, limits, _ = context
    rules = () if options.preview else root.policy.after_change
    contents = Contents()  # the contents need not fit in memory
    changed: dict[str, _File] = {}
    faults: dict[str, AgentFSError] = {}
    diff_chars = 0
    for path in found.counts:
        call_context.check()
        try:
            edit = _edit_of(context, options, matcher, path)
        except (NotFoundError, NoMatchError, NoChangeError):
            continue  # deleted or changed since the search, or left as it is
        except (AccessError, ContentError) as error:
            faults[path] = error
            continue
        final, by_others, findings, _ = finish(rules, edit, limits)
        diff_chars += len(final.diff)
        if diff_chars > MAX_DIFF_CHARS:
            raise TooLargeError(
                f"The diff of this change has more than {MAX_DIFF_CHARS} characters; nothing was changed.",
                hint=_NARROW,
                details={"limit": MAX_DIFF_CHARS},
            )
        is_known, external = tracker.knows(final.current.real_path), external_changes(context, edit)
        known = with_values(final, shows_diff=False) if is_known else None
        facts = edit.replacements, final.diff, known, external, by_others, (*findings, *warnings_of(final))
        changed.setdefault(final.current.real_path, _File(path, contents.keep(final.change), *facts))
    if faults:
        raise _refused(options, faults, len(found.counts))
    return list(changed.values())


def _edit_of(context: Context, options: ReplaceOptions, matcher: LineSearch | None, path: str) -> FileEdit:
    root, _, limits, _ = context
    with root.open_file(path) as file:
        real_path = file.real_path
    node = root.node(real_path, max_bytes=limits.file_bytes)
    if not isinstance(node, FileNode):
        raise NotFoundError(f"{quote(path)} is no longer a file.")
    draft = Draft(Current(path, real_path, node.load(), node.digest, node), limits)
    old, new = draft.view.lf(options.old_string), draft.view.lf(options.new_string)
    if matcher is None:
        draft.replace_all(old, new)
    else:
        # A template names groups, as `match.expand` reads it.
        template = new if options.regex and "\\" in new else None
        draft.replace(
            Replacement(
                offset + match.start(),
                offset + match.end(),
                new if template is None else _expanded(match, template, path, limits),
            )
            for offset, match in matcher.matches(draft.view.text)
        )
    edit = draft.finish("exact")
    root.check_replaceable(real_path, path, node.mode)
    return edit


def _expanded(match: re.Match[str], template: str, path: str, limits: Limits) -> str:
    """Expand the groups of a match in a template, unless the text might take much memory."""
    most = len(template) + template.count("\\") * len(match.string)
    check_size(most // _MOST_EXPANDED, path, limits)
    try:
        return match.expand(template)
    except Exception as error:  # noqa: BLE001 - the engine's own class, or IndexError for a wrong group
        raise InvalidArgumentError(
            Advice(NEW, f" cannot be used with this pattern: {error}."),
            hint=r"Groups are \1 or \g<name>, a line end is \n, and a backslash is \\.",
            details={"parameter": "new_string"},
        ) from None


def _about_old_string(error: InvalidPatternError) -> InvalidPatternError:
    """Return the error for an invalid pattern, which suggests a value for `old_string`."""
    suggestion = error.details.get("suggestion")
    hint = Advice("To match it literally, ", Retry({"old_string": suggestion}), ".") if suggestion else ""
    return InvalidPatternError(error.message, hint=hint or error.hint, details=error.details)


def _check_complete(found: SearchResult) -> None:
    """Raise an error if the search was cut short, because then some matches are unknown."""
    if found.skipped.reached == "timeout":
        raise TimeoutError
    if found.skipped.reached is not None or len(found.counts) < found.total_files:
        raise TooLargeError(
            "There are more files, or more matches, than one call can change; nothing was changed.",
            hint=_NARROW,
            details={"files": found.total_files, "limit": MAX_FILES},
        )


def _refused(options: ReplaceOptions, faults: dict[str, AgentFSError], total: int) -> AgentFSError:
    """Return the error for files that cannot be changed. It suggests a glob that leaves them out."""
    hint = ""
    if paths_of(options.path) == ["."] and len(faults) <= MOST_NAMED and len(faults) < total:
        globs = ["!/" + _GLOB_SPECIAL.sub(r"\\\1", path) for path in faults]
        hint = Advice("To leave them out, ", Retry({"glob": [*as_list(options.glob), *globs]}), ".")
    message = f"{len(faults)} of {plural(total, 'file')} cannot be changed, so nothing was changed:"
    return error_of_many(message, faults, hint)


def _nothing_found(
    context: Context, options: ReplaceOptions, wanted: GrepOptions, note: str, found: SearchResult
) -> AgentFSError:
    if found.total_matches:
        return NoChangeError("The replacement would leave every file as it is; nothing was changed.")
    where = first_names([*map(quote, paths_of(options.path))], MOST_NAMED)
    searched = f"{where} ({plural(found.searched, 'file')} searched)"
    reading, _ = watched(second_look)(context, wanted, found.excluded, searched=found.searched)
    hints = [] if reading is None else [_hint_of(reading)]
    return NoMatchError(
        Advice(OLD, f" is not in {searched}; nothing was changed."),
        hint=Joined("\n", *hints, footer(note, skip_report(found.skipped, can_open=False))),
        details={"searched_files": found.searched},
    )


def _hint_of(reading: Reading) -> str:
    """Return another reading of grep's arguments with the call of `replace` that has it, if there is one."""
    name, value = next(iter(reading.changes.items()), ("", None))
    # `replace` does not ignore case, but the text can be spelled as it is there.
    own = {"ignore_case": reading.match, "fixed_strings": True}.get(name, value)
    name = _OWN_NAMES.get(name, name)
    if len(reading.changes) != 1 or name not in ReplaceOptions._fields:
        return f"{reading.fact}."
    retry = Retry({}, (name,)) if own is None else Retry({name: own})
    return FirstOf(Advice(f"{reading.fact}: ", retry, "."), f"{reading.fact}.")


def _count_lines(files: Sequence[_File], most: int) -> list[str]:
    lines = [
        f"{one_line(file.path)}: {file.replacements}"
        + (f" (it had {SINCE_SHOWN})" if file.external is not None else "")
        for file in files
    ]
    return shortened(lines, most, "file")
