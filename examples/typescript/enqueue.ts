/**
 * Enqueues jobs on Reprise, with nothing but Node: no packages.
 *
 *     echo '{"type": "greet", "queue": "demo", "payload": {}}' | node enqueue.ts
 *
 * reads one job a line, in the words of POST /jobs (docs/protocol/jobs.md), and prints
 * what became of each. Jobs go in bulks: of a bulk all are taken in or none.
 *
 * When it prints, the jobs are on the server's disk. If no answer comes, nobody
 * knows whether they are; so each job carries an idempotency key, and to send
 * the same again adds nothing. A job that names none gets one by chance: that
 * makes repeated calls harmless, not a second run of this program.
 *
 * The server's address is in REPRISE_URL (default http://127.0.0.1:7890), a
 * token, if it wants one, in REPRISE_TOKEN.
 */

declare const process: {
  argv: string[];
  env: Record<string, string | undefined>;
  exitCode?: number;
  stdin: AsyncIterable<Uint8Array>;
  stdout: { write(text: string): void };
  stderr: { write(text: string): void };
};

/** Enqueues a list of jobs, all or none, and returns the server's answers. */
export async function enqueue(jobs: Record<string, unknown>[], tries = 8): Promise<any[]> {
  const headers: Record<string, string> = { "Content-Type": "application/json" };
  if (process.env.REPRISE_TOKEN) headers.Authorization = `Bearer ${process.env.REPRISE_TOKEN}`;
  const url = `${process.env.REPRISE_URL || "http://127.0.0.1:7890"}/jobs/bulk`;
  const body = JSON.stringify({ jobs });
  for (let wait = 200; ; wait = Math.min(2 * wait, 10_000)) {
    tries--;
    try {
      const answer = await fetch(url, { method: "POST", headers, body });
      if (answer.ok) return (await answer.json()).jobs;
      const said = await answer.text();
      // 429: a queue is full. 5xx: the server cannot commit now. Both pass.
      if ((answer.status !== 429 && answer.status < 500) || tries === 0) throw new RangeError(`refused: ${said}`);
      wait = Math.max(wait, 1000 * Number(answer.headers.get("Retry-After") ?? 0));
    } catch (error) {
      if (error instanceof RangeError || tries === 0) throw error; // else no answer came
    }
    await new Promise((resolve) => setTimeout(resolve, wait * (0.5 + Math.random() / 2)));
  }
}

async function main(): Promise<void> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of process.stdin) text += decoder.decode(chunk, { stream: true });
  const run = Date.now().toString(36) + Math.random().toString(36).slice(2);
  const jobs = text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line, i) => ({ idempotency_key: `${run}-${i}`, ...JSON.parse(line) }));
  for (let first = 0; first < jobs.length; first += 1000) {
    for (const job of await enqueue(jobs.slice(first, first + 1000))) process.stdout.write(JSON.stringify(job) + "\n");
  }
}

if (process.argv[1] && import.meta.url === new URL(process.argv[1], "file:///").href) {
  main().catch((error) => {
    process.stderr.write(`${error}\n`);
    process.exitCode = 1;
  });
}
