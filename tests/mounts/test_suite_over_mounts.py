"""Other tests of the suite once more, with up to three directories of each root as mounts."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
SOME = ("editing/test_edit.py", "search/test_grep.py")
MORE = (
    *(
        "search/test_find.py",
        "search/test_ls.py",
        "search/test_watch_cases.py",
        "search/test_missing_paths.py",
    ),
    *("editing/test_append.py", "editing/test_copy.py", "editing/test_replace.py", "editing/test_write.py"),
    *("history/test_journal.py", "history/test_transactions.py", "history/test_recording.py"),
    *("reading/test_read.py", "reading/test_read_many.py", "fs/test_root.py", "test_restricted_view.py"),
)
# Tests whose answer must differ, by the reason.
DIFFERENT = {
    "The ignore rules of the root do not hold in a mount.": (
        "test_an_answer_without_files_says_what_was_left_out_and_by_which_rule",
        "test_what_is_left_out_and_could_be_found_is_counted_exactly",
        "test_several_paths_find_each_file_once_in_order_of_path",
        "test_regression_each_of_several_paths_is_ahead_of_its_own_names",
        "test_a_rule_that_changes_decides_again",
        "test_a_rule_file_that_is_changed_through_another_name_decides_again",
        "test_ignored_files_are_counted_and_recorded_on_request",
    ),
    "`ls` marks mounts.": ("test_the_text_shows_kinds_sizes_and_the_report_of_skipped_names",),
    "Another program moves, replaces or removes a directory that is a mount here; the mount stays.": (
        "test_a_directory_swapped_for_a_link_leads_nowhere",
        "test_a_link_swapped_in_before_the_end_leads_nowhere",
        "test_a_change_through_a_new_name_in_a_directory_that_comes_or_goes_is_noticed",
        "test_a_directory_that_was_away_is_listed_again",
        "test_two_directories_that_change_places_do_not_change_their_watches",
        "test_everything_is_compared_after_lost_events",
        "test_the_listing_is_bounded_and_the_rest_is_searched_cold",
        "test_the_changes_of_a_command_are_one_step",
        "test_what_a_command_changed_before_the_workspace_is_a_step_of_its_own",
        "test_a_file_that_became_a_directory_or_the_reverse_comes_back",
        "test_checkpoints_and_rollback_cover_recordings",
        "test_a_directory_that_has_become_a_link_is_not_followed_out",
    ),
    "The test lets the system fail to enter a directory of the root, which is a mount here.": (
        "test_a_link_that_is_a_directory_again_when_it_is_read_is_entered",
    ),
}
NAMES = [name for names in DIFFERENT.values() for name in names]


def mounted(files: tuple[str, ...], choice: str) -> subprocess.CompletedProcess[str]:
    """Run tests over mounts."""
    paths = [str(TESTS / each) for each in files]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--mounted",
        "-p",
        "no:cacheprovider",
        *paths,
        "-k",
        choice,
    ]
    return subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=False)


@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "files", [SOME, pytest.param((*SOME, *MORE), marks=pytest.mark.long)], ids=["some", "more"]
)
def test_the_tests_pass_over_mounts(files):
    ran = mounted(files, f"not ({' or '.join(NAMES)})")
    assert ran.returncode == 0, ran.stdout[-4000:]


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_each_exception_is_needed():
    failed = set(re.findall(r"^FAILED \S+::(\w+)", mounted(MORE, " or ".join(NAMES)).stdout, re.MULTILINE))
    assert failed == {*NAMES}
