"""The store of texts."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

from agentwatch.sources.files.source import ContentStore

NOWHERE = "/nowhere"


def test_a_text_is_kept_by_its_digest() -> None:
    store = ContentStore(NOWHERE)
    store.put("d", "täxt\n\0", "a.json")
    assert store.get("d") == "täxt\n\0"
    assert store.get("other") is None


def test_the_least_recently_used_texts_are_dropped_above_the_limit() -> None:
    store = ContentStore(NOWHERE, limit=4 * 360)
    for name in "abcd":
        store.put(name, name, "gone.json")
    assert store.get("a") == "a"
    store.put("e", "e", "gone.json")
    assert [name for name in "abcde" if store.get(name)] == ["a", "c", "d", "e"]


def test_a_text_put_again_is_counted_once() -> None:
    store = ContentStore(NOWHERE, limit=3 * 360)
    for _ in range(10):
        store.put("a", "text", "a.json")
    store.put("b", "text", "a.json")
    assert store.get("a") == store.get("b") == "text"


def test_a_text_larger_than_the_limit_is_still_kept_alone() -> None:
    store = ContentStore(NOWHERE, limit=10)
    store.put("a", "text", "a.json")
    assert store.get("a") == "text"


def test_a_dropped_text_is_read_from_its_file_while_that_still_holds_it(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("text")
    digest = hashlib.sha256(b"text").hexdigest()
    store = ContentStore(str(tmp_path), limit=10)
    store.put(digest, "text", "a.json")
    store.put("b", "other", "b.json")
    assert store.get(digest) == "text"
    file.write_text("changed")
    assert store.get(digest) is None
    file.unlink()
    assert store.get(digest) is None


def test_only_so_many_places_are_remembered(tmp_path: Path) -> None:
    store = ContentStore(str(tmp_path), limit=10, places=2)
    digests = []
    for text in "abc":
        (tmp_path / f"{text}.json").write_text(text)
        digests.append(hashlib.sha256(text.encode()).hexdigest())
        store.put(digests[-1], text, f"{text}.json")
    assert [store.get(digest) for digest in digests] == [None, "b", "c"]


def test_the_place_of_what_a_file_does_not_hold_any_more_is_forgotten(tmp_path: Path) -> None:
    store = ContentStore(str(tmp_path), limit=10, places=2)
    other = hashlib.sha256(b"other").hexdigest()
    (tmp_path / "b.json").write_text("other")
    store.put(other, "other", "b.json")
    for number in range(10):
        store.put(str(number), "text", "a.json")
    assert store.get(other) == "other"


def test_threads_may_share_it() -> None:
    store = ContentStore(NOWHERE, limit=20_000)

    def work(name: str) -> None:
        for number in range(300):
            store.put(f"{name}{number}", name * number, "a.json")
            store.get(f"{name}{number - 1}")

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.get("a299") in (None, "a" * 299)
