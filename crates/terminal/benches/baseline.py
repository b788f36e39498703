"""The rule of the CAO document in Python with regular expressions, timed on the captures given as arguments.

Status: the idle prompt in the last 50 lines, a query, a response, errors. Answer: everything between the last line with
`>` and the next idle prompt, without what matches chrome. Prints one JSON object per capture.
"""

import json
import re
import statistics
import sys
import time

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
IDLE = re.compile(r"[*>]\s+Type your message")
QUERY = re.compile(r"^\s*>\s+\S", re.MULTILINE)
RESPONSE = re.compile(r"✦\s")
ERROR = re.compile(r"^(?:Error:|APIError:|ConnectionError:|Traceback)", re.MULTILINE)
CHROME = [
    re.compile(pattern)
    for pattern in (
        r"[▀▄]{10,}",
        r"(?:no )?sandbox.*(?:Auto|/model)",
        r"YOLO\b",
        r"Responding with\s+\S+",
        r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏].*\(esc to cancel",
        r"^─{10,}$",
    )
]


def status(capture):
    text = ESCAPE.sub("", capture)
    bottom = text.strip().splitlines()[-50:]
    if any(IDLE.search(line) for line in bottom):
        return "completed" if QUERY.search(text) and RESPONSE.search(text) else "idle"
    return "error" if ERROR.search(text) else "processing"


def answer(capture):
    lines = ESCAPE.sub("", capture).split("\n")
    queries = [index for index, line in enumerate(lines) if QUERY.search(line) and not IDLE.search(line)]
    if not queries:
        return ""
    kept = []
    for line in lines[queries[-1] + 1 :]:
        if IDLE.search(line):
            break
        if line.strip() and not any(pattern.search(line) for pattern in CHROME):
            kept.append(line.strip())
    return "\n".join(kept)


def median(function, capture, rounds):
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        function(capture)
        times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times)


for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        capture = file.read()
    rounds = 300 if len(capture) < 100_000 else 20
    print(json.dumps({"status": median(status, capture, rounds), "answer": median(answer, capture, rounds)}))
