"""Threads and timers have things done in the event loop, one after another."""

from __future__ import annotations

import asyncio
import threading

from acp_core.fleet.workers import Mailbox

PATIENCE = 60  # s until a test gives up


async def test_what_threads_post_is_done_in_the_loop_and_nothing_is_lost() -> None:
    mailbox, done, here = Mailbox(), [], threading.get_ident()

    def post(name: int) -> None:
        for number in range(500):
            mailbox.post(lambda n=number: done.append((name, n, threading.get_ident())))

    threads = [threading.Thread(target=post, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    async with asyncio.timeout(PATIENCE):
        while len(done) < 2000:
            await mailbox.run()
    assert {thread for _, _, thread in done} == {here}
    for name in range(4):
        assert [n for who, n, _ in done if who == name] == list(range(500))


async def test_a_timer_runs_once_and_a_later_one_takes_its_place() -> None:
    mailbox, done = Mailbox(), []
    mailbox.later("a", 3600, lambda: done.append("never"))
    mailbox.later("a", 0.001, lambda: done.append("a"))
    mailbox.later("b", 0.01, lambda: done.append("b"))
    mailbox.later("c", 0.005, lambda: done.append("c"))
    mailbox.forget("c")
    mailbox.forget("unknown")
    assert (mailbox.waits("a"), mailbox.waits("c")) == (True, False)
    async with asyncio.timeout(PATIENCE):
        while "b" not in done:
            await mailbox.run()
    assert done == ["a", "b"]
    assert not mailbox.waits("a")


async def test_after_closing_nothing_is_done() -> None:
    mailbox = Mailbox()
    mailbox.close()
    mailbox.post(lambda: 1 / 0)
    mailbox.later("a", 0, lambda: 1 / 0)
    assert not mailbox.waits("a")


def test_a_closed_loop_is_no_error() -> None:
    async def make() -> Mailbox:
        return Mailbox()

    mailbox = asyncio.run(make())
    mailbox.post(lambda: None)
