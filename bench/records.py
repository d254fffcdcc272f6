"""Benchmark records: what bench/run, layouts, shapes and run-cuda write and bench/report reads.

A record is a file bench/record/<date>-<machine>.json that is written once and never changed:

    {"schema": 1, "date": "2026-11-15", "machine": "xeon-2", "about": "one line on the machine", "commit": "...",
     "info": "what `ferrier info` prints",
     "groups": [{"title": "...", "command": "how a cell was measured; ROW and COLUMN stand for its labels", "unit": "ms",
                 "cells": [{"row": "128", "column": "c2c f64", "ours": 7.17, "peers": {"mkl": 1.54}, "note": "..."}]}]}

`ours` is a median in the unit of the group. `peers` has the ratio of each peer to ours; above 1, Ferrier is faster.
Other keys of a cell (`best`, `limit_fraction`, `error`) are kept and not shown. A group with a `page` stands in
results-<page>.md; RESULTS.md has its summary: the text `summary`, for each of its `bounds`, {column: [at most, at least]}, how many cells keep
it, and the `errors` of predictions in cells whose `counts` is true.
"""

import datetime
import json
import pathlib
import re

FOLDER = pathlib.Path(__file__).resolve().parent / "record"


def machine_name(info):
    """A short name from what `ferrier info` prints: the GPU's, or the processor's and its number of cores."""
    if match := re.search(r"CUDA\s+(?:NVIDIA )?(.+?) \(GPU", info):
        return slug(match.group(1))
    processor = re.search(r"processor\s+(.*)", info)
    cores = re.search(r"cores\s+(\d+)", info)
    name = re.sub(r"\(R\)|\(TM\)|Processor|CPU|Intel|AMD|@|\d+-Core", " ", processor.group(1) if processor else "unknown")
    return f"{slug(name)}-{cores.group(1) if cores else 0}-cores"


def slug(text):
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")


def write(record, folder=FOLDER):
    """Writes a record to a file of its own; a second one of a day and machine gets -2. Nothing is overwritten."""
    folder.mkdir(parents=True, exist_ok=True)
    record = {"schema": 1, "date": str(datetime.date.today()), **record}
    base = f"{record['date']}-{record['machine']}"
    number = 1
    while True:
        path = folder / (f"{base}.json" if number == 1 else f"{base}-{number}.json")
        try:
            with open(path, "x") as file:
                file.write(dump(record))
            return path
        except FileExistsError:
            number += 1


def dump(record):
    """JSON with one line for each cell, so that a change is seen."""
    groups = record.pop("groups")
    head = json.dumps(record, indent=1)[:-2]
    parts = []
    for group in groups:
        cells = ",\n   ".join(json.dumps(cell) for cell in group["cells"])
        rest = json.dumps({k: v for k, v in group.items() if k != "cells"})[:-1]
        parts.append(f"{rest},\n  \"cells\": [\n   {cells}]}}")
    record["groups"] = groups
    return head + ",\n \"groups\": [\n  " + ",\n  ".join(parts) + "]}\n"


def read(folder=FOLDER):
    """All records, oldest first; of one day, in the order in which they were written."""
    def key(path):
        match = re.fullmatch(r"(\d{4}-\d\d-\d\d)-(.*?)(?:-(\d{1,2}))?", path.stem)
        return (match.group(1), int(match.group(3) or 1)) if match else ("", 0)

    records = []
    for path in sorted(folder.glob("*.json"), key=key):
        record = json.loads(path.read_text())
        if record.get("schema") != 1:
            raise SystemExit(f"{path}: schema 1 expected")
        record["file"] = path.name
        records.append(record)
    return records


def transform_cell(arguments, report):
    """A cell of a report of `ferrier bench --json`: the row is the size, the column the rest."""
    size, _, rest = arguments.partition(" ")
    cell = {"row": size, "column": rest or "defaults", "ours": report["forward"]["median_ms"], "best": report["forward"]["best_ms"]}
    cell["peers"] = {peer["name"]: round(peer["ratio"], 3) for peer in report.get("peers", [])}
    for key in ("limit_fraction", "error_forward"):
        if report.get(key) is not None:
            cell[key] = report[key]
    return cell
