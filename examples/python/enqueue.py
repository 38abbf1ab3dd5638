#!/usr/bin/env python3
"""Enqueues jobs on Reprise, with nothing but Python 3.9 or newer.

    echo '{"type": "greet", "queue": "demo", "payload": {}}' | python3 enqueue.py

reads one job a line, in the words of POST /jobs (docs/protocol/jobs.md), and prints
what became of each. Jobs go in bulks: of a bulk all are taken in or none.

When it prints, the jobs are on the server's disk. If no answer comes, nobody
knows whether they are; so each job carries an idempotency key, and to send the
same again adds nothing. Where a job names none, this run makes one: run it
twice, and the jobs are there twice. To make a repeated run harmless, give the
jobs keys of their own.

The server's address is in REPRISE_URL (default http://127.0.0.1:7890), a token,
if it wants one, in REPRISE_TOKEN.
"""

import json
import os
import random
import sys
import time
import urllib.error
import urllib.request
import uuid


def enqueue(jobs, tries=8):
    """Enqueues a list of jobs, all or none, and returns the server's answers."""
    headers = {"Content-Type": "application/json"}
    if os.environ.get("REPRISE_TOKEN"):
        headers["Authorization"] = "Bearer " + os.environ["REPRISE_TOKEN"]
    url = (os.environ.get("REPRISE_URL") or "http://127.0.0.1:7890") + "/jobs/bulk"
    request = urllib.request.Request(url, json.dumps({"jobs": jobs}).encode(), headers)
    wait = 0.2
    while True:
        tries -= 1
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)["jobs"]
        except urllib.error.HTTPError as refused:
            # 429: a queue is full. 5xx: the server cannot commit now. Both pass.
            if refused.code != 429 and refused.code < 500 or tries == 0:
                raise SystemExit(f"refused: {refused.read().decode()}") from None
            wait = max(wait, float(refused.headers.get("Retry-After") or 0))
        except OSError as error:
            if tries == 0:
                raise SystemExit(f"no answer: {error}") from None
        time.sleep(wait * random.uniform(0.5, 1))
        wait = min(2 * wait, 10)


def main():
    jobs = []
    run = uuid.uuid4()
    for number, line in enumerate(sys.stdin):
        if not line.strip():
            continue
        job = json.loads(line)
        job.setdefault("idempotency_key", f"{run}-{number}")
        jobs.append(job)
    for first in range(0, len(jobs), 1000):
        for job in enqueue(jobs[first : first + 1000]):
            print(json.dumps(job))


if __name__ == "__main__":
    main()
