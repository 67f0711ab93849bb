#!/usr/bin/env python3
"""Runs a "go build", and prints its progress in percent and the time left:

    tools/progress.py [--quick] TITLE go build [FLAGS] -o FILE PACKAGE...

The compiler's time is about proportional to the size of the source. So the progress is the size of
the packages that are compiled, of all that are not in Go's build cache. A build that compiles at
most the programs themselves prints its progress only if linking takes long.

If the machine has enough memory, and GOGC is not set, the compiler collects no garbage below its
part of the memory. It uses 8 % less processor time then.

With --quick, a build of many packages has no optimization and no debug information: it takes a
quarter less time. Later builds of few packages are optimized.
"""

import os
import subprocess
import sys
import threading
import time

INTERVAL = 5  # seconds between two lines
# The linker's time, as a part of the compiler's: measured at kube-apiserver and hookloop.
LINK = 0.06
# Packages at a time. Go prints a package when its compilation starts.
CPUS = os.cpu_count() or 1
# The memory in bytes that a compiler or the linker may need.
COMPILER = 1 << 30
# A build of more packages is a first one.
MANY = 200
# Flags for a program that runs once.
QUICK = ["-gcflags=all=-N -l"]


def environment():
    """Returns the environment of the build: a compiler gets half of a processor's memory."""
    limit = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // CPUS // 2
    if limit < COMPILER or "GOGC" in os.environ or "GOMEMLIMIT" in os.environ:
        return os.environ
    return {**os.environ, "GOGC": "off", "GOMEMLIMIT": str(limit)}


def sizes(command):
    """Returns the size of the source of each package that has to be compiled."""
    flags, skip = [], False
    for word in command[2:]:
        if skip or word in ("-o", "-v"):
            skip = word == "-o" and not skip
            continue
        flags.append(word)
    form = "{{if .Stale}}{{.ImportPath}}\t{{.Dir}}{{range .GoFiles}}\t{{.}}{{end}}{{end}}"
    listed = subprocess.run(["go", "list", "-deps", "-f", form, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)
    if listed.returncode != 0:
        sys.exit(listed.stderr)
    out = {}
    for line in listed.stdout.splitlines():
        path, *rest = line.split("\t")
        if path:
            directory, files = rest[0], rest[1:]
            out[path] = 2000 + sum(os.path.getsize(os.path.join(directory, f)) for f in files
                                   if os.path.exists(os.path.join(directory, f)))
    return out


def quick(command):
    """Returns the command without optimization and debug information."""
    command = command[:2] + QUICK + command[2:]
    if "-ldflags" not in command:
        return command[:2] + ["-ldflags=-w"] + command[2:]
    command[command.index("-ldflags") + 1] += " -w"
    return command


class Build:
    """The build, as far as its output shows it."""

    def __init__(self, title, packages):
        self.title, self.packages = title, packages
        self.started = time.monotonic()
        self.begun, self.messages, self.done = [], [], threading.Event()

    def read(self, stream):
        for line in stream:
            line = line.rstrip("\n")
            if line in self.packages:
                self.begun.append(line)
            elif " " in line or ":" in line:
                self.messages.append(line)

    def fraction(self):
        compiled = sum(self.packages[p] for p in self.begun[:-CPUS])
        if len(self.begun) >= len(self.packages):
            compiled = sum(self.packages[p] for p in self.begun)
        return compiled / (sum(self.packages.values()) * (1 + LINK))

    def show(self):
        while not self.done.wait(INTERVAL):
            f, elapsed = self.fraction(), time.monotonic() - self.started
            if len(self.begun) >= len(self.packages):
                left = "linking"
            elif f < 0.05:
                left = "the time left is not known yet"
            else:
                left = "about %s left" % duration(elapsed * (1 - f) / f)
            print("  %s: %d %% after %s, %s" % (self.title, 100 * f, duration(elapsed), left), flush=True)


def duration(seconds):
    seconds = int(seconds)
    return "%d s" % seconds if seconds < 90 else "%d min %d s" % (seconds // 60, seconds % 60)


def main():
    arguments = [a for a in sys.argv[1:] if a != "--quick"]
    if arguments[1:3] != ["go", "build"] or "-o" not in arguments:
        sys.exit("usage: tools/progress.py [--quick] TITLE go build [FLAGS] -o FILE PACKAGE")
    title, command = arguments[0], arguments[1:]
    packages = sizes(command)
    if "--quick" in sys.argv and len(packages) > MANY:
        command = quick(command)
        packages = sizes(command)
    run(Build(title, packages), command)


def run(build, command):
    programs = len(command[command.index("-o") + 2:])
    if len(build.packages) > programs:
        print("building %s: %d packages to compile" % (build.title, len(build.packages)), flush=True)
    process = subprocess.Popen(["go", "build", "-v", *command[2:]], stderr=subprocess.PIPE, text=True,
                               env=environment())
    shower = threading.Thread(target=build.show)
    shower.start()
    try:
        build.read(process.stderr)
        code = process.wait()
    finally:
        build.done.set()
        shower.join()
    if code != 0:
        sys.exit("\n".join(m for m in build.messages if not m.startswith("go: downloading")))
    if len(build.packages) > programs:
        print("built %s in %s" % (build.title, duration(time.monotonic() - build.started)), flush=True)


main()
