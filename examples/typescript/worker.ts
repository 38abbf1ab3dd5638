/**
 * A worker for Reprise that needs nothing but Node: no packages.
 *
 * Copy this file into your project, write a function for each type of job, and
 * hand them over:
 *
 *     import { Worker } from "./worker.ts";
 *
 *     async function welcome(job: Job) {
 *       await sendMail(job.payload.to);
 *     }
 *     await new Worker({ welcome }, { queues: ["mail"] }).run();
 *
 * How a function ends decides what becomes of its job:
 *
 *     it returns               done
 *     throw new Retry(...)     it failed; it is tried again as the job's policy says
 *     throw new Dead(...)      it failed for good, and is kept in the dead set
 *     throw new Release(...)   given back without blame
 *     anything else            as Retry, with the name of the error as its type
 *
 * A job may run more than once: a machine can stop in the moment in which the
 * work is done and the server has not heard of it. Write your functions so that
 * this does no harm.
 *
 * Run as a program it works on a queue with the functions at the end of the file:
 *
 *     node worker.ts --queue demo --concurrency 4
 *
 * Node runs it as it is from 22.18 on. An older one, from 18 on, runs what tsc
 * makes of it (tsconfig.json is beside it). The server's address is in
 * REPRISE_URL (default http://127.0.0.1:7890), a token, if it wants one, in
 * REPRISE_TOKEN.
 *
 * It takes jobs from a named stream: GET /jobs/take with a Worker-Id. What such
 * a worker holds stays its own when the connection breaks, and when the server
 * restarts, for the re-attach window (30 s): it connects again under its name,
 * is told what it holds, and goes on. So there are no heartbeats to send. When a
 * job is cancelled, the stream says so. docs/protocol has the calls.
 */

declare const process: {
  argv: string[];
  env: Record<string, string | undefined>;
  pid: number;
  exitCode?: number;
  stdout: { write(text: string): void };
  once(signal: string, listener: () => void): void;
};

// ---- how a job may end --------------------------------------------------------

/** The attempt failed. The policy of the job decides when it runs again. */
export class Retry extends Error {
  override name = "Retry";
  /** Milliseconds until then, if you know better than the policy. */
  afterMs?: number;
  /** What the target said in Retry-After; jobs of the same group, or queue, are held until then too. */
  retryAfter?: string;
  /** The HTTP status that the target answered, for rules. */
  status?: number;

  constructor(message: string, more: { afterMs?: number; retryAfter?: string; status?: number } = {}) {
    super(message);
    this.afterMs = more.afterMs;
    this.retryAfter = more.retryAfter;
    this.status = more.status;
  }
}

/** It failed, and to try again would not help. */
export class Dead extends Error {
  override name = "Dead";
}

/** Give the job back without blame, for at least delayMs. */
export class Release extends Error {
  override name = "Release";
  delayMs: number;

  constructor(delayMs = 0) {
    super("given back");
    this.delayMs = delayMs;
  }
}

/** The job is not ours any more: it was cancelled, or took too long. */
export class Over extends Error {
  override name = "Over";
}

// ---- the calls ----------------------------------------------------------------

/** The server answered, and not with a 2xx. */
export class Refused extends Error {
  override name = "Refused";
  status: number;
  retryAfterMs: number;

  constructor(status: number, message: string, retryAfterMs: number) {
    super(`${message} (HTTP ${status})`);
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }

  /** Whether the same call may succeed later. */
  get passes(): boolean {
    return this.status >= 500 || this.status === 429;
  }
}

class Client {
  url = process.env.REPRISE_URL || "http://127.0.0.1:7890";
  token = process.env.REPRISE_TOKEN;

  /** A call that was answered with a 2xx; else it throws. */
  async open(method: string, path: string, body: unknown, headers: Record<string, string>, signal?: AbortSignal): Promise<Response> {
    if (this.token) headers.Authorization = `Bearer ${this.token}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const answer = await fetch(this.url + path, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
    if (answer.ok) return answer;
    const text = await answer.text();
    let message = text;
    try {
      message = JSON.parse(text).error;
    } catch {
      // not from this server; the text will do
    }
    throw new Refused(answer.status, message, 1000 * Number(answer.headers.get("Retry-After") ?? 0));
  }

  /** A call that may be repeated, until it is answered for good. */
  async insist(path: string, body: unknown, giveUp: AbortSignal): Promise<any> {
    for (const wait of waits()) {
      try {
        const text = await (await this.open("POST", path, body, {}, timeout(30_000))).text();
        return text === "" ? undefined : JSON.parse(text);
      } catch (error) {
        if (giveUp.aborted || (error instanceof Refused && !error.passes)) throw error;
        await sleep(error instanceof Refused ? Math.max(wait, error.retryAfterMs) : wait, giveUp);
      }
    }
  }
}

/** Waits that double, each between half and the whole of it by chance. */
function* waits(first = 100, most = 5000): Generator<number> {
  for (let wait = first; ; wait = Math.min(2 * wait, most)) yield wait * (0.5 + Math.random() / 2);
}

/** Waits, or returns early when the signal comes. */
function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, signal.aborted ? 0 : ms);
    signal.addEventListener("abort", done);
  });
}

function timeout(ms: number): AbortSignal {
  const control = new AbortController();
  const timer: any = setTimeout(() => control.abort(new Error(`no answer within ${ms} ms`)), ms);
  timer.unref(); // it alone keeps no process alive
  return control.signal;
}

// ---- a job that runs ----------------------------------------------------------

/** What the server says of a job; docs/protocol has all the members. */
export type Told = {
  id: string;
  type: string;
  payload: any;
  attempts: number;
  lease: string;
  held?: boolean;
  voided?: string;
  progress?: { checkpoint?: any };
};

export type Handler = (job: Job) => Promise<void>;

/** What a function gets: the job, and ways to speak of it meanwhile. */
export class Job {
  client: Client;
  told: Told;
  id: string;
  type: string;
  payload: any;
  attempt: number;
  /** What the attempt before this one saved last; undefined if it saved nothing. */
  checkpoint: any;
  /** Set it to "90s" and the job's group, or queue, rests so long. */
  hold?: string;
  /** The job is not ours any more. */
  over = false;
  ended = new AbortController();

  constructor(client: Client, told: Told) {
    this.client = client;
    this.told = told;
    this.id = told.id;
    this.type = told.type;
    this.payload = told.payload;
    this.attempt = told.attempts + 1;
    this.checkpoint = told.progress?.checkpoint;
  }

  /** Aborted when to go on makes no sense: hand it to fetch and its like. */
  get signal(): AbortSignal {
    return this.ended.signal;
  }

  /** Throws if to go on makes no sense. Call it now and then. */
  check(): void {
    if (this.over) throw new Over("the job is not ours any more");
    if (this.ended.signal.aborted) throw new Release();
  }

  async sleep(ms: number): Promise<void> {
    await sleep(ms, this.signal);
    this.check();
  }

  /**
   * Tells how far the work has come. When it returns, the checkpoint (any JSON up
   * to 64 KiB) is on the server's disk, and the next attempt gets it.
   */
  async progress(news: { fraction?: number; text?: string; checkpoint?: unknown }): Promise<void> {
    this.check();
    try {
      await this.client.insist(`/jobs/${this.id}/progress`, { lease: this.told.lease, ...news }, this.signal);
    } catch (error) {
      if (error instanceof Refused && (error.status === 404 || error.status === 409)) this.lose();
      this.check();
      throw error;
    }
  }

  lose(): void {
    this.over = true;
    this.ended.abort();
  }
}

// ---- the worker ---------------------------------------------------------------

export type Options = {
  /** Where to take from; none means all. */
  queues?: string[];
  /** How many run at the same time. Default 4. */
  concurrency?: number;
  /** How many it holds, running ones included. Default twice the concurrency. */
  prefetch?: number;
  /** How long running jobs may go on after SIGTERM. Default 20 s. */
  drainMs?: number;
  /** The name under which it holds its jobs. No two running workers may share one. */
  name?: string;
};

type Outcome = Record<string, unknown>;

export class Worker {
  client = new Client();
  handlers: Record<string, Handler>;
  queues: string[];
  concurrency: number;
  prefetch: number;
  drainMs: number;
  name: string;

  held = new Map<string, Job>(); // by lease: waiting, running, or being settled
  settled = new Set<string>(); // leases of late; the server may name them once more
  waiting: Job[] = []; // of those held, the ones that were not started
  running = 0;
  outcomes: Outcome[] = []; // for the server
  reporting = false;
  stopping = false;
  late = new AbortController(); // the drain is over: do not wait for anything
  connection = new AbortController(); // the stream as it is now
  told = () => {}; // called when the server has said what we hold, while it stops

  constructor(handlers: Record<string, Handler>, options: Options = {}) {
    this.handlers = handlers;
    this.queues = options.queues ?? [];
    this.concurrency = options.concurrency ?? 4;
    this.prefetch = options.prefetch ?? 2 * this.concurrency;
    this.drainMs = options.drainMs ?? 20_000;
    this.name = options.name ?? `node-${process.pid}-${Math.random().toString(36).slice(2, 8)}`;
  }

  /** Works until SIGTERM or SIGINT, then ends what runs and returns. */
  async run(): Promise<void> {
    const stop = new Promise<void>((resolve) => {
      for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, resolve);
    });
    log("ready", { worker: this.name });
    const taking = this.take();
    await Promise.race([stop, taking]); // taking ends by itself only if it is refused
    await this.finish();
    await taking;
  }

  /** Keeps the stream open. Throws when the server refuses it for good. */
  async take(): Promise<void> {
    let pauses = waits();
    while (!this.late.signal.aborted) {
      this.connection = new AbortController();
      try {
        await this.read(() => (pauses = waits()));
      } catch (error) {
        if (error instanceof Refused && !error.passes) throw error;
        if (this.late.signal.aborted) return;
        log("waiting", { why: String(error) });
      }
      await sleep(pauses.next().value, this.late.signal);
    }
  }

  /** One connection, until it ends. */
  async read(connected: () => void): Promise<void> {
    // While it stops, the worker stays there under its name, on a queue that
    // nobody fills: it gets nothing new, and keeps what it holds.
    const queues = this.stopping ? [`draining-${this.name}`] : this.queues;
    const query = new URLSearchParams({ lease: "token", prefetch: String(this.stopping ? 1 : this.prefetch) });
    if (queues.length > 0) query.set("queue", queues.join(","));
    const headers = { Accept: "application/x-ndjson", "Worker-Id": this.name };
    const control = this.connection;
    const answer = await this.client.open("GET", `/jobs/take?${query}`, undefined, headers, control.signal);
    connected();
    let quiet = this.stopping ? setTimeout(this.told, 300) : undefined; // what we hold is told at once
    const stream = answer.body!.getReader();
    const decoder = new TextDecoder();
    let text = "";
    for (;;) {
      // A living stream has something to say every 3 s, be it an empty line.
      const silence = setTimeout(() => control.abort(new Error("the stream fell silent")), 30_000);
      const { done, value } = await stream.read().finally(() => clearTimeout(silence));
      if (done) throw new Error("the server ended the stream");
      if (this.stopping) {
        clearTimeout(quiet);
        quiet = setTimeout(this.told, 300);
      }
      text += decoder.decode(value, { stream: true });
      const lines = text.split("\n");
      text = lines.pop()!;
      for (const line of lines) {
        if (line !== "") this.hear(JSON.parse(line));
      }
    }
  }

  /** One line of the stream that says something. */
  hear(told: Told): void {
    const known = this.held.get(told.lease);
    if (told.voided !== undefined) {
      known?.lose();
      this.next();
    } else if (known === undefined && !this.settled.has(told.lease)) {
      const job = new Job(this.client, told);
      this.held.set(told.lease, job);
      this.waiting.push(job);
      this.next();
    } // else it is told again what we hold, because we connected again
  }

  /** Starts what has room; gives back what waits when the worker stops. */
  next(): void {
    while (this.waiting.length > 0 && (this.stopping || this.running < this.concurrency)) {
      const job = this.waiting.shift()!;
      if (job.over) this.settle(job, undefined);
      else if (this.stopping) this.settle(job, { outcome: "release" });
      else {
        this.running++;
        void this.work(job);
      }
    }
  }

  async work(job: Job): Promise<void> {
    log("start", { id: job.id, type: job.type, attempt: job.attempt, checkpoint: job.checkpoint });
    let outcome: Outcome | undefined;
    try {
      const handler = this.handlers[job.type];
      if (handler === undefined) throw new Dead(`this worker has no function for the type ${job.type}`);
      await handler(job);
      outcome = { outcome: "ok" };
    } catch (error) {
      outcome = outcomeOf(error);
    }
    this.running--;
    this.settle(job, outcome);
    this.next();
  }

  settle(job: Job, outcome: Outcome | undefined): void {
    if (outcome === undefined || job.over) {
      log("over", { id: job.id }); // what came out of it counts no more
      this.forget(job.told.lease);
      return;
    }
    this.outcomes.push({ ...outcome, id: job.id, lease: job.told.lease, hold: job.hold });
    if (!this.reporting) void this.report();
  }

  /** One call at a time tells the server all that has gathered. */
  async report(): Promise<void> {
    this.reporting = true;
    while (this.outcomes.length > 0) {
      const batch = this.outcomes.splice(0, 100);
      let verdicts: any[] = [];
      try {
        verdicts = (await this.client.insist("/jobs/settle", batch, this.late.signal)).verdicts;
      } catch (error) {
        log("unsettled", { why: String(error) }); // they run again when their leases end
      }
      batch.forEach((said, i) => {
        // "not_found" after a repeated call: it was taken the first time, and the job is gone.
        log("settled", { id: said.id, outcome: said.outcome, status: verdicts[i]?.status, code: verdicts[i]?.code });
        this.forget(said.lease as string);
      });
    }
    this.reporting = false;
  }

  forget(lease: string): void {
    this.held.delete(lease);
    this.settled.add(lease);
    if (this.settled.size > 10_000) {
      const [oldest] = this.settled;
      this.settled.delete(oldest);
    }
  }

  /** Waits for what runs; after the drain it is told to end and given back. */
  async finish(): Promise<void> {
    log("draining", { running: this.running, waiting: this.waiting.length });
    this.stopping = true;
    this.next();
    // What was on its way to us is told when we connect again, and given back.
    const told = new Promise<void>((resolve) => (this.told = resolve));
    this.connection.abort(new Error("draining"));
    const quiet = async (ms: number) => {
      const until = Date.now() + ms;
      while (this.held.size > 0 && Date.now() < until) await sleep(20, this.late.signal);
      return this.held.size === 0;
    };
    if (!(await quiet(this.drainMs))) {
      for (const job of this.held.values()) job.ended.abort();
    }
    await Promise.race([told, sleep(5000, this.late.signal)]);
    if (!(await quiet(5000))) log("left", { running: this.held.size }); // their leases end, and they run again
    this.late.abort();
    this.connection.abort(new Error("ended"));
    log("ended", {});
  }
}

/** What a function threw, in the words of POST /jobs/settle. */
function outcomeOf(thrown: unknown): Outcome | undefined {
  if (thrown instanceof Over) return undefined;
  if (thrown instanceof Release) return { outcome: "release", delay_ms: thrown.delayMs };
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  const failure = { message: error.message, error_type: error.name, backtrace: error.stack?.slice(0, 8000) };
  if (error instanceof Dead) return { outcome: "dead", error: failure };
  if (!(error instanceof Retry)) return { outcome: "retry", error: failure };
  return {
    outcome: "retry",
    error: { ...failure, status: error.status },
    retry_in_ms: error.afterMs,
    retry_after: error.retryAfter,
  };
}

/** One line of JSON for each thing that happens. */
function log(event: string, details: Record<string, unknown>): void {
  process.stdout.write(JSON.stringify({ event, ...details }) + "\n");
}

// ---- yours: a function for each type of job -------------------------------------

async function greet(job: Job): Promise<void> {
  await job.sleep(1000 * (job.payload.seconds ?? 0));
}

/** Fails as often as its payload says. */
async function flaky(job: Job): Promise<void> {
  if (job.attempt <= (job.payload.failures ?? 1)) throw new Retry("the target does not answer", { status: 503 });
}

async function hopeless(): Promise<void> {
  throw new Dead("there is no such customer");
}

/** A target that wants to be left alone for a while. */
async function busy(job: Job): Promise<void> {
  if (job.payload.retry_after) throw new Retry("429 Too Many Requests", { status: 429, retryAfter: job.payload.retry_after });
  job.hold = job.payload.hold; // it took this one, and said that its limit is used up
}

/** Long work in steps. What was done is not done again by the next attempt. */
async function count(job: Job): Promise<void> {
  for (let at = job.checkpoint?.at ?? 0; at < job.payload.to; ) {
    await job.sleep(1000 * (job.payload.seconds ?? 0.1));
    at++;
    await job.progress({ fraction: at / job.payload.to, checkpoint: { at } });
    if (at === job.payload.stumble && job.attempt === 1) throw new Error(`stumbled at ${at}`);
  }
}

async function main(): Promise<void> {
  const options: Options = { queues: [] };
  for (let i = 2; i < process.argv.length; i += 2) {
    const value = process.argv[i + 1];
    if (process.argv[i] === "--queue" && value) options.queues!.push(value);
    else if (process.argv[i] === "--concurrency" && Number(value) > 0) options.concurrency = Number(value);
    else if (process.argv[i] === "--drain" && Number(value) >= 0) options.drainMs = 1000 * Number(value);
    else throw new Error("usage: worker.ts [--queue NAME]... [--concurrency N] [--drain SECONDS]");
  }
  await new Worker({ greet, flaky, hopeless, busy, count }, options).run();
}

if (process.argv[1] && import.meta.url === new URL(process.argv[1], "file:///").href) {
  main().catch((error) => {
    log("failed", { why: String(error) });
    process.exitCode = 1;
  });
}
