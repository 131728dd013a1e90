"""The store of texts."""

from __future__ import annotations

import threading

from agentwatch.sources.files.content import ContentStore


def test_a_text_is_kept_by_its_digest() -> None:
    store = ContentStore()
    store.put("d", "täxt\n\0")
    assert store.get("d") == "täxt\n\0"
    assert store.get("other") is None


def test_the_least_recently_used_texts_are_dropped_above_the_limit() -> None:
    store = ContentStore(limit=4 * 300)
    for name in "abcd":
        store.put(name, name)
    assert store.get("a") == "a"
    store.put("e", "e")
    assert [name for name in "abcde" if store.get(name)] == ["a", "c", "d", "e"]


def test_a_text_put_again_is_counted_once() -> None:
    store = ContentStore(limit=3 * 300)
    for _ in range(10):
        store.put("a", "text")
    store.put("b", "text")
    assert store.get("a") == store.get("b") == "text"


def test_a_text_larger_than_the_limit_is_still_kept_alone() -> None:
    store = ContentStore(limit=10)
    store.put("a", "text")
    assert store.get("a") == "text"


def test_threads_may_share_it() -> None:
    store = ContentStore(limit=20_000)

    def work(name: str) -> None:
        for number in range(300):
            store.put(f"{name}{number}", name * number)
            store.get(f"{name}{number - 1}")

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.get("a299") in (None, "a" * 299)
