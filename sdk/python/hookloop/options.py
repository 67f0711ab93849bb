"""Options that Server and attach share."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """Configures Server, attach and Attachment.

    threads limits how many functions run at the same time. build_id identifies this build of the
    hook: when it changes, Hookloop calls the hook again for all parents. If it is empty, a hash of
    the functions' source files is used. grace_period is how many seconds running calls may continue
    after stop.
    """

    threads: int = 32
    build_id: str = ""
    grace_period: float = 10.0

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise ValueError(f"threads is {self.threads}, expected at least 1")
        if self.grace_period < 0:
            raise ValueError(f"grace_period is {self.grace_period}, expected 0 or more seconds")
