#!/usr/bin/env python3
"""Runs the first stage of a Dockerfile in folders, without a container:

    stage.py CONTEXT ROOT [ARG=VALUE]...

ROOT becomes the root of the stage: COPY copies into it, and RUN runs there with this machine's
programs, with its absolute paths below ROOT. Then it checks that the files that later stages copy
exist; those of the base image are searched on this machine.
"""

import pathlib
import re
import shutil
import subprocess
import sys


class Stage:
    def __init__(self, context, root, arguments):
        self.context, self.root, self.arguments = context, root, arguments
        self.workdir, self.declared = root, {}

    def path(self, name):
        """Returns a path of the stage as a path of this machine."""
        return self.root / name.lstrip("/") if name.startswith("/") else self.workdir / name

    def step(self, instruction, rest):
        getattr(self, "on_" + instruction.lower(), self.unknown)(rest)

    def unknown(self, rest):
        sys.exit("stage.py: got the instruction %r in the first stage, expected WORKDIR, COPY, ARG or RUN" % rest)

    def on_workdir(self, name):
        self.workdir = self.path(name)
        self.workdir.mkdir(parents=True, exist_ok=True)

    def on_arg(self, declaration):
        name, _, value = declaration.partition("=")
        self.declared[name] = self.arguments.get(name, value.strip('"'))

    def on_copy(self, names):
        *sources, target = names.split()
        for name in sources:
            source, goal = self.context / name, self.path(target)
            if source.is_dir():
                shutil.copytree(source, goal, symlinks=True, dirs_exist_ok=True,
                                ignore=shutil.ignore_patterns(".git", ".cache", "node_modules"))
            else:
                goal.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, goal)

    def on_run(self, command):
        command = re.sub(r"(?<=[ =])/(?=\w)", "%s/" % self.root, command)
        settings = " ".join("%s='%s'" % item for item in self.declared.items())
        subprocess.run(["sh", "-ec", "export %s; %s" % (settings, command) if settings else command],
                       cwd=self.workdir, check=True)


def instructions(text):
    """Returns the instructions of a Dockerfile."""
    text = re.sub(r"(?m)^#.*\n", "", text)
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if line.strip():
            instruction, _, rest = line.strip().partition(" ")
            yield instruction.upper(), rest.strip()


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: stage.py CONTEXT ROOT [ARG=VALUE]...")
    context, root = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
    root.mkdir(parents=True, exist_ok=True)
    stage = Stage(context, root, dict(a.split("=", 1) for a in sys.argv[3:]))
    stages, copied = 0, 0
    for instruction, rest in instructions((context / "Dockerfile").read_text()):
        stages += instruction == "FROM"
        if stages == 1 and instruction != "FROM":
            stage.step(instruction, rest)
        match = re.fullmatch(r"--from=\S+ (\S+) \S+", rest) if stages > 1 and instruction == "COPY" else None
        if match:
            name = match.group(1)
            copied += 1
            if not stage.path(name).exists() and not pathlib.Path(name).exists():
                sys.exit("stage.py: the last stage copies %s, which the first stage does not have" % name)
    if stages < 2 or copied == 0:
        sys.exit("stage.py: got %d stages and %d copies, expected a stage that copies from another" % (stages, copied))


main()
