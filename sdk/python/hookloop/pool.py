"""Provides a thread pool with daemon threads, which concurrent.futures does not offer.

A hook's function may never return, and must not keep the program from ending.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, Optional

Task = Callable[[], Any]


class Pool(Executor):
    """Runs tasks in up to so many threads. A thread starts when it is needed."""

    def __init__(self, threads: int, name: str):
        if threads < 1:
            raise ValueError(f"threads is {threads}, expected at least 1")
        self._max_threads, self._name = threads, name
        self._changed = threading.Condition()  # guards the fields below; idle threads wait for it
        self._tasks: OrderedDict["Future[Any]", Task] = OrderedDict()  # in the order of submit
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._closed = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Queues a call of the function and returns a future. RuntimeError is raised after
        shutdown.
        """
        future: "Future[Any]" = Future()
        with self._changed:
            if self._closed:
                raise RuntimeError(f"the pool {self._name} is shut down")
            if self._idle <= len(self._tasks) and len(self._threads) < self._max_threads:
                name = f"{self._name}-{len(self._threads)}"
                thread = threading.Thread(target=self._work, name=name, daemon=True)
                thread.start()
                self._threads.append(thread)
            self._tasks[future] = lambda: fn(*args, **kwargs)
            self._changed.notify()
        future.add_done_callback(self._remove)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accepts no more tasks. Queued tasks still run unless cancel_futures is True."""
        with self._changed:
            self._closed = True
            dropped = list(self._tasks) if cancel_futures else []
            if cancel_futures:
                self._tasks.clear()
            self._changed.notify_all()
        for future in dropped:
            future.cancel()
        for thread in self._threads if wait else ():
            thread.join()

    def _remove(self, future: "Future[Any]") -> None:
        """Removes a task that was cancelled before a thread took it."""
        with self._changed:
            self._tasks.pop(future, None)

    def _work(self) -> None:
        """Runs in each thread."""
        while task := self._next():
            _run(*task)
            del task  # an idle thread holds no reference to its last task

    def _next(self) -> Optional[tuple["Future[Any]", Task]]:
        with self._changed:
            self._idle += 1
            self._changed.wait_for(lambda: self._tasks or self._closed)
            self._idle -= 1
            return self._tasks.popitem(last=False) if self._tasks else None


def _run(future: "Future[Any]", task: Task) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = task()
    except BaseException as error:  # the caller of result gets it
        future.set_exception(error)
    else:
        future.set_result(result)
