"""Other tests of the suite once more, with up to three directories of each root as mounts."""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
SOME = ("editing/test_edit.py", "search/test_grep.py")
MORE = (
    *("search/test_find.py", "search/test_ls.py", "search/test_watch_cases.py", "editing/test_replace.py"),
    *(
        "history/test_journal.py",
        "history/test_transactions.py",
        "history/test_recording.py",
        "fs/test_root.py",
    ),
    *(
        "editing/test_append.py",
        "editing/test_move_directory.py",
        "reading/test_read.py",
        "test_restricted_view.py",
    ),
)
# Tests whose answer must differ.
DIFFERENT = (
    # The ignore rules of the root do not hold in a mount.
    *(
        "says_what_was_left_out_and_by_which_rule",
        "find_each_file_once_in_order_of_path",
        "ahead_of_its_own_names",
    ),
    *("could_be_found_is_counted_exactly", "changed_through_another_name_decides_again", "rule_that_changes"),
    # `ls` marks mounts.
    "the_text_shows_kinds_sizes",
    # The test replaces or moves a directory that is a mount here.
    *(
        "swapped_for_a_link",
        "link_swapped_in",
        "comes_or_goes",
        "was_away",
        "change_places",
        "after_lost_events",
    ),
    *("is_searched_cold", "is_a_directory_again"),
)


@pytest.mark.parametrize(
    "files", [SOME, pytest.param((*SOME, *MORE), marks=pytest.mark.long)], ids=["some", "more"]
)
def test_the_tests_pass_over_mounts(files):
    present = [str(TESTS / each) for each in files if (TESTS / each).exists()]
    command = [sys.executable, "-m", "pytest", "-q", "--mounted", "-p", "no:cacheprovider", *present]
    command += ["-k", " and ".join(f"not {each}" for each in DIFFERENT)]
    ran = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-4000:]
