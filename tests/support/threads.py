"""Functions that threads run together."""

import threading
from collections.abc import Callable


def run_together(work: Callable[[int], object], count: int = 8) -> None:
    """Run a function of the thread's number in threads that begin together, and raise what one of them raises."""
    begin, failed = threading.Barrier(count), list[BaseException]()

    def run(mine: int) -> None:
        begin.wait()
        try:
            work(mine)
        except BaseException as problem:
            failed.append(problem)

    threads = [threading.Thread(target=run, args=(mine,), daemon=True) for mine in range(count)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    if failed:
        raise failed[0]
    assert not any(each.is_alive() for each in threads)
