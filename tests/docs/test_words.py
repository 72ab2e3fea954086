"""The pages are short: README is one screen or two, and the documentation can be read in an afternoon."""

from scripts.words import ROOT, parts, words_of

# Words of README, of all pages and of CONTRIBUTING, outside code blocks.
README, PAGES, CONTRIBUTING = 600, 30_000, 1_200


def test_readme_and_all_pages_keep_within_their_words():
    counted = dict(parts())
    assert counted["README"].total <= README
    assert counted["all"].total <= PAGES
    assert words_of(ROOT / "CONTRIBUTING.md").total <= CONTRIBUTING
