"""The walk of a search. In a watched tree, it repeats what an earlier walk found in unchanged directories."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, TypeVar

from agentfs.fs import Directory, Root
from agentfs.tree.gitignore import IgnoreRules, Sources
from agentfs.tree.walk import LeftOut, Level, Visit, Walk, entry_name

_D = TypeVar("_D")
_MAX_KEYS = 4  # walks that a directory keeps
_MAX_DERIVED = 4  # searches whose derived results are kept


class _Mark(NamedTuple):
    """The state of a walk when it entered a directory."""

    log: int
    rules: int
    entries_left: int
    unsteady: int
    outer_rules: Hashable


class _RulesInside(NamedTuple):
    """The rule files in a directory."""

    directory: Directory
    deciding: frozenset[str]
    sources: Sources


class _RulesAbove(NamedTuple):
    """The key of the rules above the top of another tree."""

    real_path: str
    key: Hashable


@dataclass(slots=True)
class KeptWalk:
    """A recorded walk below a directory; it is valid while no listing and no rule changes."""

    outer_rules: Hashable  # the key of the rules above the directory
    rules: tuple[_RulesInside | _RulesAbove, ...]
    log: tuple[Visit | LeftOut, ...]  # visits and left-out names, in order
    looked_at: int  # number of names
    _derived: dict[Hashable, Any] | None = None  # results that searches derived

    @property
    def visits(self) -> Iterator[Visit]:
        """The visits that were yielded."""
        return (item for item in self.log if isinstance(item, Visit))

    def derived(self, key: Hashable, derive: Callable[[Iterator[Visit]], _D]) -> _D:
        """Return what a search derives from the visits; only the last few results are kept."""
        kept = self._derived
        if kept is None or (key not in kept and len(kept) >= _MAX_DERIVED):
            kept = self._derived = {}
        if key not in kept:
            kept[key] = derive(self.visits)
        found: _D = kept[key]
        return found


@dataclass(eq=False)
class SearchWalk(Walk):
    """A walk of a search; `search_walk` returns its class."""

    _: KW_ONLY
    stops: bool = False  # the iteration may end early, so names must not be counted ahead
    filters: Hashable = None  # identifies `hidden`, `enter` and `exclude`; None: do not record

    def replayable(self) -> KeptWalk | None:
        """In a watched tree, return an earlier walk if it is still valid; else None: iterate this one."""
        return None


def search_walk(root: Root) -> type[SearchWalk]:
    """Return the class of a walk below a root."""
    return SearchWalk if root.tree is None else _RecordedWalk


@dataclass(eq=False)
class _RecordedWalk(SearchWalk):
    """A walk that is recorded, and repeated while nothing changes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._key: Any = None  # key under which directories keep this walk; None if it is not recorded
        self._first: Level | None = None  # the start, once it is open
        self._log: list[Visit | LeftOut] = []  # visits and left-out names
        self._open_part = True  # False if the next left-out name begins a new part of the log
        self._rules: list[_RulesInside | _RulesAbove] = []
        self._marks: dict[Level, _Mark] = {}  # of the directories that can be kept
        self._known: dict[tuple[Directory, frozenset[str]], Sources] = {}

    def replayable(self) -> KeptWalk | None:
        """Return an earlier walk if it is still valid."""
        if len(self._starts) > 1:
            return None
        self._first = first = self._start(self._starts[0])
        kept = self._kept(first)
        if kept is not None:
            self._left_out += [item for item in kept.log if isinstance(item, LeftOut)]
        return kept

    def _start(self, path: str) -> Level:
        first, self._first = self._first, None
        if first is not None:
            return first
        visit = super()._start(path)
        tests = self.enter or self.exclude or callable(self.hidden)
        filters = self.filters if tests else ()
        lasts = self.key is entry_name and filters is not None and not (self.follow or self.stops)
        if lasts and len(self._starts) == 1 and visit.directory.derived is not None:
            hidden = None if callable(self.hidden) else self.hidden
            shown = self.directories, self.listing, self.depth
            options = hidden, self.ignored, self.others, *shown
            self._key = visit.directory, options, filters
        return visit

    def _enter(self, level: Level) -> Iterable[Visit]:
        if self._key is None:
            return super()._enter(level)
        if (kept := self._kept(level)) is not None:
            return self._repeat(kept)
        self._open_part = False
        if level.directory.derived is None:
            self._unsteady += 1
        else:
            lengths = len(self._log), len(self._rules)
            self._marks[level] = _Mark(*lengths, self._entries_left, self._unsteady, level.rules.key)
        return super()._enter(level)

    def _found(self, visit: Visit) -> Visit:
        if self._key is not None:
            self._log.append(visit)
        return visit

    def _leave(self, level: Level) -> None:
        """Close a directory, and keep its walk for the next search."""
        super()._leave(level)
        derived, mark = level.directory.derived, self._marks.pop(level, None)
        if derived is None or mark is None:
            return
        self._open_part = False
        if self._reached is None and self._unsteady == mark.unsteady:
            if len(derived) >= _MAX_KEYS:
                del derived[next(iter(derived))]
            rules, log = tuple(self._rules[mark.rules :]), tuple(self._log[mark.log :])
            derived[self._key] = KeptWalk(
                mark.outer_rules, rules, log, mark.entries_left - self._entries_left
            )

    def _part(self) -> LeftOut:
        if not self._open_part:
            self._open_part = True
            self._left_out.append(LeftOut())
            self._log.append(self._left_out[-1])
        return super()._part()

    def _sources(self, level: Level, deciding: frozenset[str]) -> Sources:
        sources = self._sources_in(level.directory, deciding)
        if level in self._marks:
            self._rules.append(_RulesInside(level.directory, deciding, sources))
        return sources

    def _sources_in(self, directory: Directory, deciding: frozenset[str]) -> Sources:
        """Read rule files once, because they are compared before a directory is walked again."""
        if (directory, deciding) not in self._known:
            self._known[directory, deciding] = self._reader.sources(directory, deciding)
        return self._known[directory, deciding]

    def _rules_above(self, real_path: str) -> IgnoreRules:
        rules = super()._rules_above(real_path)
        if self._marks:
            self._rules.append(_RulesAbove(real_path, rules.key))
        return rules

    def _kept(self, level: Level) -> KeptWalk | None:
        """Return the last walk of a directory if it is still valid."""
        derived = level.directory.derived
        if self._key is None or derived is None or self._reached is not None:
            return None
        kept: KeptWalk | None = derived.get(self._key)
        if kept is None or kept.outer_rules != level.rules.key or kept.looked_at > self._entries_left:
            return None
        if not all(map(self._is_current, kept.rules)) or self._is_late(kept.looked_at):
            return None
        self._entries_left -= kept.looked_at
        derived[self._key] = derived.pop(self._key)  # moves it to the end, as the newest
        return kept

    def _is_current(self, rules: _RulesInside | _RulesAbove) -> bool:
        if isinstance(rules, _RulesAbove):
            return self._reader.above(rules.real_path).key == rules.key
        return self._sources_in(rules.directory, rules.deciding) == rules.sources

    def _repeat(self, kept: KeptWalk) -> Iterator[Visit]:
        """Yield the visits of an earlier walk of a directory."""
        self._open_part = False
        self._rules += kept.rules
        self._log += kept.log
        self._left_out += [item for item in kept.log if isinstance(item, LeftOut)]
        return kept.visits
