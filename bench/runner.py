"""What bench/run, bench/layouts and bench/shapes share: options, runs of `ferrier`, cases, the record.

They need Python and a built `ferrier` (--ferrier), no Rust: they run on a machine to which both were copied.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import records

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent


def parser(description):
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--machine", help="name of the machine")
    options.add_argument("--about", help="a line on the machine")
    options.add_argument("--commit", help="the commit that was built (default: git describe)")
    options.add_argument("--keep", type=pathlib.Path, help="keep measurements in this folder, and do not take them again")
    options.add_argument("--limit", type=float, default=float("inf"), help="begin no case after this many seconds")
    options.add_argument("--ferrier", default=str(ROOT / "target/release/ferrier"))
    options.add_argument("--record", type=pathlib.Path, default=records.FOLDER, help="folder of the record")
    return options


class Failed(Exception):
    """A command that failed, with its message."""


def ferrier(options, command, arguments, wisdom="off"):
    """The JSON report of `ferrier COMMAND ARGUMENTS`."""
    line = [options.ferrier, command, *arguments.split(), "--json", "-"]
    result = subprocess.run(line, capture_output=True, text=True, env={**os.environ, "FERRIER_WISDOM": str(wisdom)})
    if result.returncode != 0:
        raise Failed(f"{' '.join(line)}: {result.stderr.strip()}")
    return json.loads(result.stdout)


def cases(name):
    """The lines of a file of cases, as fields."""
    for line in (HERE / name).read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            yield [field.strip() for field in line.split("|")]


def measured(options, listed, measure):
    """For each (key, case): key, case and `measure(case)`, or what was kept of it. A failed case is told and left out;
    after --limit only kept ones are."""
    listed = list(listed)
    began = time.monotonic()
    for number, (key, case) in enumerate(listed, 1):
        path = options.keep / (re.sub(r"[^a-z0-9]+", "-", key) + ".json") if options.keep else None
        if path and path.exists():
            yield key, case, json.loads(path.read_text())
            continue
        if time.monotonic() - began > options.limit:
            continue
        start = time.monotonic()
        try:
            data = measure(case)
        except Failed as failure:
            print(f"[{number}/{len(listed)}] {key}: failed: {failure}", file=sys.stderr, flush=True)
            continue
        print(f"[{number}/{len(listed)}] {key} ({time.monotonic() - start:.0f} s)", file=sys.stderr, flush=True)
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(data))
        yield key, case, data


def write(options, groups):
    """Writes the record of groups; nothing is overwritten."""
    groups = [group for group in groups if group["cells"]]
    if not groups:
        sys.exit("nothing was measured")
    info = subprocess.run([options.ferrier, "info"], capture_output=True, text=True, check=True).stdout.strip()
    name = options.machine or records.machine_name(info)
    record = {"machine": name, "about": options.about or name, "commit": options.commit or described(), "info": info, "groups": groups}
    path = records.write(record, options.record)
    print(f"{path} is written; bench/report makes RESULTS.md of all records in bench/record")


def described():
    try:
        return subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:
        return ""
