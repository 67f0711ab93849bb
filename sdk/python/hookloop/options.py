"""Settings that a server and an attachment share."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """Settings of Server, attach and Attachment.

    threads is the maximum number of concurrent calls of functions. build_id is the version of the
    hook: if it changes, engines call the hook for all parents again. The default is a hash of the
    source files of the functions. grace_period is the time that open calls have after stop, in
    seconds.
    """

    threads: int = 32
    build_id: str = ""
    grace_period: float = 10.0

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise ValueError(f"threads is {self.threads}, expected at least 1")
        if self.grace_period < 0:
            raise ValueError(f"grace_period is {self.grace_period}, expected 0 or more seconds")
