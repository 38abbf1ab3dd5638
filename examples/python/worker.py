#!/usr/bin/env python3
"""A worker for Reprise that needs nothing but Python 3.9 or newer.

Copy this file into your project, write a function for each type of job, and
hand them over:

    import worker

    def welcome(job):
        send_mail(job.payload["to"])

    worker.Worker({"welcome": welcome}, queues=["mail"]).run()

How a function ends decides what becomes of its job:

    it returns          done
    raise Retry(...)    it failed; it is tried again as the job's policy says
    raise Dead(...)     it failed for good, and is kept in the dead set
    raise Release(...)  given back without blame
    anything else       as Retry, with the name of the exception as its type

A job may run more than once: a machine can stop in the moment in which the
work is done and the server has not heard of it. Write your functions so that
this does no harm.

Run as a program it works on a queue with the functions at the end of the file:

    python3 worker.py --queue demo --concurrency 4

The server's address is in REPRISE_URL (default http://127.0.0.1:7890), a token,
if it wants one, in REPRISE_TOKEN. The calls are explained in docs/protocol.
"""

import argparse
import http.client
import json
import os
import random
import signal
import socket
import ssl
import sys
import threading
import time
import traceback
import urllib.parse


# ---- how a job may end --------------------------------------------------------


class Retry(Exception):
    """The attempt failed. The policy of the job decides when it runs again.

    after        seconds until then, if you know better than the policy
    retry_after  what the target said in its header Retry-After; other jobs of
                 the same group, or queue, are held until then too
    status       the HTTP status that the target answered, for rules
    """

    def __init__(self, message, after=None, retry_after=None, status=None):
        super().__init__(message)
        self.after, self.retry_after, self.status = after, retry_after, status


class Dead(Exception):
    """It failed, and to try again would not help."""


class Release(Exception):
    """Give the job back without blame, for at least delay seconds."""

    def __init__(self, delay=0.0):
        super().__init__("given back")
        self.delay = delay


class Over(Exception):
    """The job is not ours any more: it was cancelled, or took too long."""


# ---- the calls ----------------------------------------------------------------


class Refused(Exception):
    """The server answered, and not with a 2xx."""

    def __init__(self, status, code, message, retry_after=None):
        super().__init__(f"{message} ({code}, HTTP {status})")
        self.status, self.code, self.retry_after = status, code, retry_after

    @property
    def passes(self):
        """Whether the same call may succeed later."""
        return self.status >= 500 or self.status == 429


NO_ANSWER = (OSError, http.client.HTTPException)


class Client:
    """Calls with JSON in and out, over connections that are kept. Thread-safe."""

    def __init__(self, url=None, token=None):
        self.url = urllib.parse.urlsplit(url or os.environ.get("REPRISE_URL") or "http://127.0.0.1:7890")
        self.headers = {"Content-Type": "application/json", "Accept": "application/json"}
        token = token or os.environ.get("REPRISE_TOKEN")
        if token:
            self.headers["Authorization"] = "Bearer " + token
        self.idle = []  # connections that nobody uses; append and pop are atomic

    def _connect(self):
        host, port = self.url.hostname, self.url.port
        if self.url.scheme == "https":
            return http.client.HTTPSConnection(host, port or 443, context=ssl.create_default_context())
        return http.client.HTTPConnection(host, port or 80)

    def call(self, method, path, body=None, timeout=30.0):
        """One call. Raises Refused, or one of NO_ANSWER."""
        text = None if body is None else json.dumps(body)
        while True:
            try:
                connection, kept = self.idle.pop(), True
            except IndexError:
                connection, kept = self._connect(), False
            try:
                connection.timeout = timeout
                if connection.sock is not None:
                    connection.sock.settimeout(timeout)
                connection.request(method, path, text, self.headers)
                answer = connection.getresponse()
                data = answer.read()
            except NO_ANSWER as error:
                connection.close()
                if kept and not isinstance(error, socket.timeout):
                    continue  # the server had ended this connection long ago
                raise
            if answer.will_close:
                connection.close()
            else:
                self.idle.append(connection)
            if answer.status < 300:
                return json.loads(data) if data else None
            try:
                said = json.loads(data)
            except ValueError:
                said = {}
            raise Refused(answer.status, said.get("code", "?"), said.get("error", answer.reason), answer.getheader("Retry-After"))

    def insist(self, method, path, body, give_up=lambda: False):
        """A call that may be repeated, until it is answered for good."""
        for wait in waits():
            try:
                return self.call(method, path, body)
            except NO_ANSWER as error:
                why = error
            except Refused as error:
                if not error.passes:
                    raise
                why = error
                wait = max(wait, seconds(error.retry_after))
            if give_up():
                raise why
            time.sleep(wait)


def waits(first=0.1, most=5.0):
    """Waits that double, each between half and the whole of it by chance."""
    while True:
        yield first * random.uniform(0.5, 1)
        first = min(2 * first, most)


def seconds(header):
    """The Retry-After of this server, which is always a number."""
    return float(header) if header and header.isdigit() else 0.0


# ---- a job that runs ----------------------------------------------------------


class Job:
    """What a function gets: the job, and ways to speak of it meanwhile."""

    def __init__(self, worker, told):
        self.worker = worker
        self.told = told  # all that the server told, as a dict
        self.id, self.type, self.payload = told["id"], told["type"], told.get("payload")
        self.lease = told["lease"]
        self.attempt = told["attempts"] + 1
        # What the attempt before this one saved last; None if it saved nothing.
        self.checkpoint = told.get("progress", {}).get("checkpoint")
        self.hold = None  # set it to "90s" and the job's group, or queue, rests so long
        self.over = threading.Event()  # the job is not ours any more
        self.ended = threading.Event()  # that, or the worker must end now

    def check(self):
        """Ends the function if to go on makes no sense. Call it now and then."""
        if self.over.is_set():
            raise Over()
        if self.ended.is_set():
            raise Release()

    def sleep(self, duration):
        """Like time.sleep, but wakes up for check."""
        self.ended.wait(duration)
        self.check()

    def progress(self, fraction=None, text=None, checkpoint=None):
        """Tells how far the work has come. When it returns, the checkpoint (any
        JSON up to 64 KiB) is on the server's disk, and the next attempt gets it."""
        self.check()
        body = {"lease": self.lease, "ms": self.worker.lease_ms}
        for name, value in (("fraction", fraction), ("text", text), ("checkpoint", checkpoint)):
            if value is not None:
                body[name] = value
        try:
            self.worker.client.insist("POST", f"/jobs/{self.id}/progress", body, self.ended.is_set)
        except (Refused, *NO_ANSWER) as error:
            if isinstance(error, Refused) and error.status in (404, 409):
                self.lose()
            self.check()
            raise

    def lose(self):
        self.over.set()
        self.ended.set()


# ---- the worker ---------------------------------------------------------------


class Worker:
    """Leases jobs, runs a function on each in a thread, and settles them.

    handlers     a function for each type of job
    queues       where to take from; none means all
    concurrency  how many run at the same time
    lease        seconds for which a job stays ours without a heartbeat; three
                 are sent in that time
    drain        seconds that running jobs have to end after SIGTERM
    """

    def __init__(self, handlers, queues=(), concurrency=4, lease=30.0, drain=20.0, client=None, name=None):
        self.handlers, self.queues, self.concurrency = handlers, list(queues), concurrency
        self.lease_ms, self.drain = int(lease * 1000), drain
        self.client = client or Client()
        self.name = name or f"{socket.gethostname()}-{os.getpid()}"
        self.free = threading.Semaphore(concurrency)
        self.running = {}  # lease: Job; until the server has taken what became of it
        self.lock = threading.Lock()  # guards running
        self.fewer = threading.Condition(self.lock)  # running has lost one
        self.stopping = threading.Event()
        self.late = threading.Event()  # the drain is over: do not wait for anything

    def run(self):
        """Works until SIGTERM or SIGINT, then ends what runs and returns."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stopping.set())
        threading.Thread(target=self.heartbeat, daemon=True).start()
        log("ready", worker=self.name)
        pauses = waits()
        while not self.stopping.is_set():
            slots = self.slots()
            if slots == 0:
                continue
            jobs, failed = [], True
            try:
                jobs = self.take(slots)
                failed, pauses = False, waits()
            except Refused as refused:
                if not refused.passes:
                    raise  # a wrong token, say: nothing that waiting would change
                log("waiting", why=str(refused))
                self.stopping.wait(seconds(refused.retry_after))
            except NO_ANSWER as error:
                log("waiting", why=str(error))
            for told in jobs:
                self.begin(Job(self, told))
            for _ in range(slots - len(jobs)):
                self.free.release()
            if failed:
                self.stopping.wait(next(pauses))
        self.finish()

    def slots(self):
        """How many jobs could run; waits a moment for the first to have room."""
        if not self.free.acquire(timeout=0.5):
            return 0
        free = 1
        while free < self.concurrency and self.free.acquire(blocking=False):
            free += 1
        return free

    def take(self, most):
        # The call waits for work, but not long: whoever ends the worker waits
        # for it too. To hang up instead could lose jobs that are on their way.
        asked = {"worker": self.name, "max": min(most, 1000), "lease_ms": self.lease_ms, "wait_ms": 2000}
        if self.queues:
            asked["queues"] = self.queues
        return self.client.call("POST", "/jobs/lease", asked)["jobs"]

    def begin(self, job):
        with self.lock:
            self.running[job.lease] = job
        threading.Thread(target=self.work, args=(job,), daemon=True).start()

    def work(self, job):
        try:
            self.settle(job, self.outcome(job))
        finally:
            with self.lock:
                del self.running[job.lease]
                self.fewer.notify_all()
            self.free.release()

    def outcome(self, job):
        """Runs the function, and says how it went in the words of POST /jobs/settle."""
        if self.stopping.is_set():
            return {"outcome": "release"}  # it came while we were told to stop
        log("start", id=job.id, type=job.type, attempt=job.attempt, checkpoint=job.checkpoint)
        try:
            if "start_by" in job.told:
                self.extend([job])  # tells that the run begins, in time
            handler = self.handlers.get(job.type)
            if handler is None:
                raise Dead(f"this worker has no function for the type {job.type}")
            handler(job)
            return {"outcome": "ok"}
        except Over:
            return None
        except Release as release:
            return {"outcome": "release", "delay_ms": int(release.delay * 1000)}
        except Dead as dead:
            return {"outcome": "dead", "error": failure(dead)}
        except Retry as retry:
            said = {"outcome": "retry", "error": failure(retry)}
            if retry.status is not None:
                said["error"]["status"] = retry.status
            if retry.after is not None:
                said["retry_in_ms"] = int(retry.after * 1000)
            if retry.retry_after is not None:
                said["retry_after"] = retry.retry_after
            return said
        except Exception as error:  # a bug, or a target that is away: the policy decides
            return {"outcome": "retry", "error": failure(error)}

    def settle(self, job, said):
        if said is None or job.over.is_set():
            log("over", id=job.id)  # what came out of it counts no more
            return
        said.update(id=job.id, lease=job.lease)
        if job.hold is not None:
            said["hold"] = job.hold
        try:
            verdict = self.client.insist("POST", "/jobs/settle", [said], self.late.is_set)["verdicts"][0]
        except (Refused, *NO_ANSWER) as error:
            log("unsettled", id=job.id, why=str(error))  # it runs again when its lease lapses
            return
        # "not_found" after a repeated call: it was taken the first time, and the job is gone.
        log("settled", id=job.id, outcome=said["outcome"], status=verdict.get("status"), code=verdict.get("code"))

    def heartbeat(self):
        while not self.late.wait(self.lease_ms / 3000):
            with self.lock:
                jobs = list(self.running.values())
            try:
                self.extend(jobs)
            except (Refused, *NO_ANSWER) as error:
                log("waiting", why=str(error))

    def extend(self, jobs):
        if not jobs:
            return
        leases = [{"id": job.id, "lease": job.lease, "started": True} for job in jobs]
        answer = self.client.call("POST", "/jobs/extend", {"leases": leases, "ms": self.lease_ms}, timeout=10)
        for job, verdict in zip(jobs, answer["verdicts"]):
            if verdict.get("code") in ("superseded", "not_found"):
                job.lose()

    def finish(self):
        """Waits for what runs; after the drain it is told to end and given back."""
        log("draining", running=len(self.running))
        if not self.quiet(self.drain):
            with self.lock:
                for job in self.running.values():
                    job.ended.set()
            if not self.quiet(5):
                log("left", running=len(self.running))  # their leases lapse, and they run again
        self.late.set()
        log("ended")

    def quiet(self, patience):
        """Whether nothing runs any more, within so many seconds."""
        with self.fewer:
            return self.fewer.wait_for(lambda: not self.running, patience)


def failure(error):
    """An exception as the server keeps it, with the end of its trace."""
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return {"message": str(error), "error_type": type(error).__name__, "backtrace": trace[-8000:]}


def log(event, **details):
    """One line of JSON for each thing that happens."""
    line = json.dumps({"event": event, **{k: v for k, v in details.items() if v is not None}})
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


# ---- yours: a function for each type of job -------------------------------------


def greet(job):
    job.sleep(job.payload.get("seconds", 0))


def flaky(job):
    """Fails as often as its payload says."""
    if job.attempt <= job.payload.get("failures", 1):
        raise Retry("the target does not answer", status=503)


def hopeless(job):
    raise Dead("there is no such customer")


def busy(job):
    """A target that wants to be left alone for a while."""
    if "retry_after" in job.payload:
        raise Retry("429 Too Many Requests", status=429, retry_after=job.payload["retry_after"])
    job.hold = job.payload["hold"]  # it took this one, and said that its limit is used up


def count(job):
    """Long work in steps. What was done is not done again by the next attempt."""
    at = job.checkpoint["at"] if job.checkpoint else 0
    while at < job.payload["to"]:
        job.sleep(job.payload.get("seconds", 0.1))
        at += 1
        job.progress(fraction=at / job.payload["to"], checkpoint={"at": at})
        if at == job.payload.get("stumble") and job.attempt == 1:
            raise RuntimeError(f"stumbled at {at}")


def main():
    p = argparse.ArgumentParser(description="An example of a worker for Reprise.")
    p.add_argument("--queue", action="append", default=[], help="where to take jobs from; may be repeated; none means all")
    p.add_argument("--concurrency", type=int, default=4, help="jobs at the same time (default 4)")
    p.add_argument("--lease", type=float, default=30, help="seconds that a job stays ours without a heartbeat (default 30)")
    p.add_argument("--drain", type=float, default=20, help="seconds that running jobs have to end after SIGTERM (default 20)")
    a = p.parse_args()
    handlers = {"greet": greet, "flaky": flaky, "hopeless": hopeless, "busy": busy, "count": count}
    try:
        Worker(handlers, a.queue, a.concurrency, a.lease, a.drain).run()
    except Refused as refused:
        sys.exit(f"the server refused this worker: {refused}")


if __name__ == "__main__":
    main()
