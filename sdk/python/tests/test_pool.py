"""The thread pool."""

import threading
import unittest

from hookloop.pool import Pool
from tests.test_server import WAIT


class Threads(unittest.TestCase):
    def test_tasks_have_their_results(self):
        pool = Pool(3, "test")
        self.assertEqual(list(pool.map(lambda n: n * n, range(20))), [n * n for n in range(20)])
        with self.assertRaises(ZeroDivisionError):
            pool.submit(lambda: 1 // 0).result(WAIT)
        pool.shutdown()
        with self.assertRaisesRegex(RuntimeError, "test is shut down"):
            pool.submit(print)

    def test_as_many_at_a_time_as_there_are_threads(self):
        pool, together, leave = Pool(2, "test"), threading.Barrier(3), threading.Event()

        def task():
            together.wait(WAIT)
            return leave.wait(WAIT)

        running = [pool.submit(task) for _ in range(2)]
        third = pool.submit(print)
        together.wait(WAIT)
        self.assertFalse(third.running())
        pool.shutdown(wait=False, cancel_futures=True)
        self.assertTrue(third.cancelled())
        leave.set()
        self.assertEqual([one.result(WAIT) for one in running], [True, True])

    def test_tasks_that_are_cancelled_do_not_pile_up(self):
        pool, entered, leave = Pool(1, "test"), threading.Event(), threading.Event()
        pool.submit(lambda: (entered.set(), leave.wait(WAIT)))
        self.assertTrue(entered.wait(WAIT))
        for _ in range(100):
            pool.submit(print).cancel()
        self.assertEqual(len(pool._tasks), 0)
        leave.set()
        self.assertEqual(pool.submit(lambda: 7).result(WAIT), 7)
        pool.shutdown()

    def test_a_pool_needs_a_thread(self):
        with self.assertRaisesRegex(ValueError, "threads is 0, expected at least 1"):
            Pool(0, "test")
