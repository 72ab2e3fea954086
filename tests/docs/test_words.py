"""The pages are short: README is one screen or two, and the documentation can be read in an afternoon."""

from scripts.words import parts

# Words of README and of all pages, outside code blocks.
README, PAGES = 600, 30_000


def test_readme_and_all_pages_keep_within_their_words():
    counted = dict(parts())
    assert counted["README"].total <= README
    assert counted["all"].total <= PAGES
