"""The pages are short: README is one screen or two, and the documentation can be read in an afternoon."""

from scripts.words import parts

# Words of README, of the internals, and of all pages except the tables of the dialects' contracts.
README, INTERNALS, PAGES = 700, 5_000, 30_000


def test_readme_the_internals_and_all_pages_keep_within_their_words():
    counted = dict(parts())
    assert counted["README"].total <= README
    assert counted["internals"].total <= INTERNALS
    assert counted["others"].total <= PAGES
