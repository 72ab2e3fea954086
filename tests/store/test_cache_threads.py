"""Threads share the database of a cache: each keeps and finds its own."""

from concurrent.futures import ThreadPoolExecutor

from agentfs.store.cache import Known, open_cache


def test_regression_threads_of_one_sync_keep_and_find_their_own(tmp_path):
    """Without a lock they share the cached statements of SQLite: wrong rows, or "API misuse"."""
    with open_cache(str(tmp_path), 30) as cache:

        def keep_and_find(number):
            data = b"%d\n" % number * 50
            cache.note(Known(f"f{number}", f"tag {number}", len(data), "digest"), data)
            return cache.text(f"f{number}") == data and cache.tag("known", f"f{number}") == f"tag {number}"

        with ThreadPoolExecutor(16) as pool:
            assert all(pool.map(keep_and_find, range(200)))
