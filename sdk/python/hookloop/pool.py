"""Threads for functions that may never return: unlike those of concurrent.futures they do not keep a program from ending."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, Optional


class Pool(Executor):
    """Runs tasks in so many threads at most; they are started when they are needed."""

    def __init__(self, threads: int, name: str):
        if threads < 1:
            raise ValueError(f"threads is {threads}, expected at least 1")
        self._max_threads, self._name = threads, name
        self._changed = threading.Condition()  # guards all below, and what idle threads wait for
        self._tasks: OrderedDict[Future, Callable[[], Any]] = OrderedDict()  # in the order in which they came
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._closed = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future:
        """Has a function called, and gives the future of its result. RuntimeError says that the pool takes no more."""
        future: Future = Future()
        with self._changed:
            if self._closed:
                raise RuntimeError(f"the pool {self._name} is shut down")
            if self._idle <= len(self._tasks) and len(self._threads) < self._max_threads:
                thread = threading.Thread(target=self._work, name=f"{self._name}-{len(self._threads)}", daemon=True)
                thread.start()
                self._threads.append(thread)
            self._tasks[future] = lambda: fn(*args, **kwargs)
            self._changed.notify()
        future.add_done_callback(self._remove)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Takes no more tasks. Those that wait for a thread still get one, unless they are cancelled."""
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

    def _remove(self, future: Future) -> None:
        """Lets a task go that is cancelled before a thread has taken it."""
        with self._changed:
            self._tasks.pop(future, None)

    def _work(self) -> None:
        """A thread."""
        while task := self._next():
            _run(*task)
            del task  # an idle thread holds nothing of the last one

    def _next(self) -> Optional[tuple[Future, Callable[[], Any]]]:
        with self._changed:
            self._idle += 1
            self._changed.wait_for(lambda: self._tasks or self._closed)
            self._idle -= 1
            return self._tasks.popitem(last=False) if self._tasks else None


def _run(future: Future, call: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:  # it is the future's
        future.set_exception(error)
    else:
        future.set_result(result)
