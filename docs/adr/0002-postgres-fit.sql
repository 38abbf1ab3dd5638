-- What docs/adr/0002-postgres-fit.md says, as a script that runs on PostgreSQL
-- 15 or later and fails at the first statement that is wrong:
--
--   psql -X -v ON_ERROR_STOP=1 -f docs/adr/0002-postgres-fit.sql DATABASE
--
-- It makes the schema reprise_fit, fills it (-v jobs=200000), runs every
-- statement of the store as a prepared one, checks what it answers, explains
-- the hot ones, and drops the schema again. The statements are the ones the
-- store will send; the rest is scaffolding.
\set QUIET on
\if :{?jobs} \else \set jobs 200000 \endif
\pset pager off
\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;
SET jit = off; -- short statements; say so in the store's connections too
DROP SCHEMA IF EXISTS reprise_fit CASCADE;
CREATE SCHEMA reprise_fit;
SET search_path = reprise_fit;

-- 1. Tables ----------------------------------------------------------------

-- Line positions and other ordered numbers: drawn after the gate is locked.
CREATE SEQUENCE seq;

-- Everything of a job is in doc, in the encoding of the embedded store. The
-- columns are its index entries, computed by rule.EntriesOf and by nothing
-- else; NULL = it has no such entry. Texts sort as bytes, ids as bytes.
CREATE TABLE jobs (
  id             uuid     PRIMARY KEY,
  version        bigint   NOT NULL,           -- +1 at every write
  state          smallint NOT NULL,
  queue          text     COLLATE "C" NOT NULL,
  type           text     COLLATE "C" NOT NULL,
  wants          boolean  NOT NULL,           -- Entries.Wants
  class          integer,                     -- Entries.Class, a row of classes
  priority       integer  NOT NULL,           -- Entries.Pos
  band           smallint NOT NULL,
  seq            bigint   NOT NULL,
  member         boolean  NOT NULL,           -- Entries.Member
  grp            text     COLLATE "C",        -- its group if it is a member
  inner_priority integer,                     -- Entries.Inner
  inner_band     smallint,
  due_at         bigint,                      -- Entries.Timer, one a hand
  lapse_at       bigint,
  expire_at      bigint,
  purge_at       bigint,
  park           text     COLLATE "C",
  payload        uuid     NOT NULL,
  doc            bytea    NOT NULL
);
CREATE INDEX jobs_line    ON jobs (queue, class, priority, band, seq, id) WHERE wants AND NOT member;
CREATE INDEX jobs_member  ON jobs (queue, grp, inner_priority, inner_band, seq, id) WHERE member;
CREATE INDEX jobs_wanting ON jobs (queue, grp, inner_priority, inner_band, seq, id) WHERE wants AND member;
CREATE INDEX jobs_due ON jobs (member, due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX jobs_lapse ON jobs (member, lapse_at, id) WHERE lapse_at IS NOT NULL;
CREATE INDEX jobs_expire ON jobs (member, expire_at, id) WHERE expire_at IS NOT NULL;
CREATE INDEX jobs_purge ON jobs (member, purge_at, id) WHERE purge_at IS NOT NULL;
CREATE INDEX jobs_list    ON jobs (queue, state, id);
CREATE INDEX jobs_park    ON jobs (park, id)      WHERE park IS NOT NULL;
CREATE INDEX jobs_payload ON jobs (payload)       WHERE payload <> id;

-- (holder, job) of every live lease; the lease itself is in doc.
CREATE TABLE held (holder text COLLATE "C", job uuid, PRIMARY KEY (holder, job));

-- The classes of lines that there are: small, kept by every node, so that Fit
-- and Pick stay in Go.
CREATE TABLE classes (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  requires text COLLATE "C" NOT NULL, retried boolean NOT NULL, alone boolean NOT NULL,
  UNIQUE (requires, retried, alone)
);

-- One row a group that has members. doc is the row of the contract; live and
-- blockers are kept under its lock; stands and the place are what rule.Stands
-- answered when it was last written.
CREATE TABLE gates (
  queue    text COLLATE "C", grp text COLLATE "C",
  version  bigint  NOT NULL DEFAULT 0,
  live     integer NOT NULL DEFAULT 0,
  blockers integer NOT NULL DEFAULT 0,
  hold_at  bigint,
  stands   boolean NOT NULL DEFAULT false,
  class    integer, priority integer, band smallint, seq bigint, head uuid,
  doc      bytea,
  PRIMARY KEY (queue, grp)
) WITH (fillfactor = 70);
CREATE INDEX gates_line ON gates (queue, class, priority, band, seq, head) WHERE stands;
CREATE INDEX gates_hold ON gates (hold_at, queue, grp) WHERE hold_at IS NOT NULL;

-- Queues, holders, reserves. Gates and receipts have tables of their own.
CREATE TABLE rows (
  tab smallint, key bytea, version bigint NOT NULL, due_at bigint, doc bytea NOT NULL,
  PRIMARY KEY (tab, key)
);
CREATE INDEX rows_due ON rows (tab, due_at, key) WHERE due_at IS NOT NULL;

CREATE TABLE receipts (hash uuid PRIMARY KEY, expires bigint NOT NULL, doc bytea NOT NULL);
CREATE INDEX receipts_due ON receipts (expires, hash);

CREATE TABLE payloads (ref uuid PRIMARY KEY, shared boolean NOT NULL DEFAULT false, body bytea NOT NULL);
ALTER TABLE payloads ALTER body SET STORAGE EXTERNAL; -- we compress nothing: it may be compressed already

CREATE TABLE failures (job uuid, number bigint, doc bytea NOT NULL, PRIMARY KEY (job, number));

-- Deltas: every node adds to rows of its own and everyone sums (Count, Depth, Names).
CREATE TABLE counts (
  queue text COLLATE "C", type text COLLATE "C", state smallint, node integer,
  jobs bigint NOT NULL, bytes bigint NOT NULL, grouped bigint NOT NULL,
  PRIMARY KEY (queue, type, state, node)
) WITH (fillfactor = 50);

-- The one function: a batch that did not find what it read is run again. The
-- error reaches COMMIT in the same pipeline, so the commit does not happen.
CREATE FUNCTION expect(what text, got bigint, want bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF got <> want THEN
    RAISE EXCEPTION '%: % rows instead of %', what, got, want USING ERRCODE = 'serialization_failure';
  END IF;
END $$;

-- 2. Scaffolding: jobs -----------------------------------------------------

CREATE FUNCTION an_id(n bigint) RETURNS uuid IMMUTABLE LANGUAGE sql AS
  $$ SELECT (lpad(to_hex(1700000000000 + n / 50), 12, '0') || lpad(to_hex(n), 12, '0') || '00000000')::uuid $$;

-- Eight queues, ready, 16 priorities; every 20th is scheduled, every 100th is
-- leased, every 1000th dead.
INSERT INTO classes (requires, retried, alone) VALUES ('', false, false), ('', true, false), ('region=eu', false, false);
INSERT INTO jobs
SELECT an_id(n), 1,
  CASE WHEN n % 1000 = 7 THEN 5 WHEN n % 100 = 3 THEN 3 WHEN n % 20 = 1 THEN 1 ELSE 2 END,
  'q' || n % 8, 'deliver', NOT (n % 1000 = 7 OR n % 100 = 3 OR n % 20 = 1), 1 + (n % 10 = 4)::int,
  32768 + n % 16, 1, n, false, NULL, NULL, NULL,
  CASE WHEN n % 20 = 1 THEN 1700000000000 + n END, CASE WHEN n % 100 = 3 THEN 1700000000000 + n END, NULL,
  CASE WHEN n % 1000 = 7 THEN 1700000000000 + n END, NULL, an_id(n), decode(repeat('ab', 60), 'hex')
FROM generate_series(1, :jobs) n;
INSERT INTO payloads SELECT id, false, decode(repeat('cd', 128), 'hex') FROM jobs;
INSERT INTO held SELECT 'w/worker-' || seq / 100 % 40, id FROM jobs WHERE state = 3;
-- A strictly ordered queue: 20,000 groups of 2.
INSERT INTO jobs
SELECT an_id(10000000 + n), 1, 2, 'strict', 'deliver', true, 1, 32768, 1, 10000000 + n, true, 'g' || n % 20000, 0, 0,
  NULL, NULL, NULL, NULL, NULL, an_id(10000000 + n), decode(repeat('ab', 60), 'hex')
FROM generate_series(0, 39999) n;
INSERT INTO gates (queue, grp, stands, class, priority, band, seq, head, doc)
SELECT 'strict', 'g' || n, true, 1, 32768, 1, 10000000 + n, an_id(10000000 + n), '' FROM generate_series(0, 19999) n;
INSERT INTO counts SELECT queue, type, state, 1, count(*), 0, count(grp) FROM jobs GROUP BY 1, 2, 3;
INSERT INTO rows VALUES (0, 'q0', 1, NULL, '{}'), (2, 'w/worker-1', 1, 1700000000500, '{}');
INSERT INTO receipts SELECT an_id(n), 1700003600000 + n, decode(repeat('ef', 40), 'hex') FROM generate_series(1, 1000) n;
INSERT INTO failures SELECT an_id(7), n, 'x' FROM generate_series(1, 51) n;
ANALYZE;

-- 3. The first round trip: lock and read -----------------------------------
-- One pipeline, in this order. Gates before jobs, both in key order; numbers
-- are drawn once the gates are locked.

-- Now: read once a transaction. clock_timestamp(), because now() stands still
-- at the BEGIN; a node keeps the highest it has seen.
PREPARE now_ms AS SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint;

-- Row(Gates) and every put, take and settle of a member: the gates of the
-- groups named ($1, $2), of the jobs named ($3), and of what the holders named
-- hold ($4); made where a group named has none.
PREPARE make_gates (text[], text[]) AS
  INSERT INTO gates (queue, grp) SELECT * FROM unnest($1, $2) AS g(queue, grp) ORDER BY 1, 2
  ON CONFLICT DO NOTHING;
PREPARE lock_gates (text[], text[], uuid[], text[]) AS
  SELECT g.* FROM gates g
  WHERE (g.queue, g.grp) IN (SELECT * FROM unnest($1, $2)
    UNION SELECT j.queue, j.grp FROM jobs j WHERE j.id = ANY ($3) AND j.member
    UNION SELECT j.queue, j.grp FROM held h JOIN jobs j ON j.id = h.job WHERE h.holder = ANY ($4) AND j.member)
  ORDER BY g.queue, g.grp FOR UPDATE OF g;
-- What rule.Stands and Members need to know of each: the first members, and
-- the first that want a holder. $5 is 1 + how many members the batch touches.
-- A statement of its own: it sees what the lock waited for.
PREPARE gate_windows (text[], text[], uuid[], text[], int) AS
  SELECT g.queue, g.grp, w.* FROM (SELECT * FROM unnest($1, $2)
    UNION SELECT j.queue, j.grp FROM jobs j WHERE j.id = ANY ($3) AND j.member
    UNION SELECT j.queue, j.grp FROM held h JOIN jobs j ON j.id = h.job WHERE h.holder = ANY ($4) AND j.member)
    AS g(queue, grp) CROSS JOIN LATERAL (
    (SELECT 'first', m.id, m.version, m.inner_priority, m.inner_band, m.seq, m.doc FROM jobs m
     WHERE m.member AND m.queue = g.queue AND m.grp = g.grp
     ORDER BY m.inner_priority, m.inner_band, m.seq, m.id LIMIT $5)
    UNION ALL
    (SELECT 'wanting', m.id, m.version, m.inner_priority, m.inner_band, m.seq, m.doc FROM jobs m
     WHERE m.member AND m.wants AND m.queue = g.queue AND m.grp = g.grp
     ORDER BY m.inner_priority, m.inner_band, m.seq, m.id LIMIT $5)) w;

-- Positions for this batch: unused ones are skipped.
PREPARE draw (int) AS SELECT nextval('seq') FROM generate_series(1, $1);

-- Get, for all ids of the batch at once. FOR UPDATE, so that the batch cannot
-- fail because of them; in id order, so that two nodes cannot deadlock.
PREPARE get_jobs (uuid[]) AS
  SELECT id, version, payload, doc FROM jobs WHERE id = ANY ($1) ORDER BY id FOR UPDATE;

-- Row, for the other tables. What was not there is remembered as such.
PREPARE get_rows (smallint[], bytea[]) AS
  SELECT tab, key, version, doc FROM rows WHERE (tab, key) IN (SELECT * FROM unnest($1, $2)) ORDER BY tab, key FOR UPDATE;
PREPARE get_receipts (uuid[]) AS SELECT hash, doc FROM receipts WHERE hash = ANY ($1);

-- Ready: $1, $2 = the lines to look at, queue and class side by side: open
-- queues (rule.Open) and classes that fit (rule.Fits), both decided in Go;
-- $3 = n, $4 = how far to look into each line, n for a few lines and less for
-- many. First how many of each line are among the first n of all, without a
-- lock; then so many of each line are locked. Exact inside a queue; across
-- queues the shares may be off by what others have locked at the moment.
PREPARE ready (text[], int[], int, int) AS
  WITH share AS MATERIALIZED (
    SELECT queue, class, count(*) AS n FROM (
      SELECT l.queue, l.class FROM unnest($1, $2) AS l(queue, class) CROSS JOIN LATERAL (
        SELECT j.priority, j.band, j.seq, j.id FROM jobs j
        WHERE j.queue = l.queue AND j.class = l.class AND j.wants AND NOT j.member
        ORDER BY j.priority, j.band, j.seq, j.id LIMIT $4) h
      ORDER BY h.priority, h.band, h.seq, h.id LIMIT $3) heads
    GROUP BY queue, class)
  SELECT t.*, (SELECT p.body FROM payloads p WHERE p.ref = t.payload) FROM share s CROSS JOIN LATERAL (
    SELECT j.id, j.version, j.priority, j.band, j.seq, j.payload, j.doc FROM jobs j
    WHERE j.queue = s.queue AND j.class = s.class AND j.wants AND NOT j.member
    ORDER BY j.priority, j.band, j.seq, j.id LIMIT s.n FOR UPDATE SKIP LOCKED) t
  ORDER BY t.priority, t.band, t.seq, t.id;

-- Ready, the gates: the same over gates_line. SKIP LOCKED is on the gate only;
-- whoever has it locked has the group's turn. Then the head, by its id: an
-- index scan would see the group as it was before the lock. A strict group
-- needs no window, because it does not stand while its turn lasts; the windows
-- of other groups are read in the next trip.
PREPARE ready_gates (text[], int[], int, int) AS
  WITH share AS MATERIALIZED (
    SELECT queue, class, count(*) AS n FROM (
      SELECT l.queue, l.class FROM unnest($1, $2) AS l(queue, class) CROSS JOIN LATERAL (
        SELECT g.priority, g.band, g.seq, g.head FROM gates g
        WHERE g.queue = l.queue AND g.class = l.class AND g.stands
        ORDER BY g.priority, g.band, g.seq, g.head LIMIT $4) h
      ORDER BY h.priority, h.band, h.seq, h.head LIMIT $3) heads
    GROUP BY queue, class)
  SELECT t.*, j.*, (SELECT p.body FROM payloads p WHERE p.ref = j.payload)
  FROM share s CROSS JOIN LATERAL (
    SELECT g.* FROM gates g WHERE g.queue = s.queue AND g.class = s.class AND g.stands
    ORDER BY g.priority, g.band, g.seq, g.head LIMIT s.n FOR UPDATE SKIP LOCKED) t
  CROSS JOIN LATERAL (
    SELECT j.id, j.version AS job_version, j.payload, j.doc AS job FROM jobs j WHERE j.id = t.head FOR UPDATE) j
  ORDER BY t.priority, t.band, t.seq, t.head;

-- Ready over all queues: the lines that have anybody in them, by jumping from
-- one to the next; it costs one index probe a line that is not empty.
PREPARE lines AS
  WITH RECURSIVE l AS (
    (SELECT queue, class FROM jobs WHERE wants AND NOT member ORDER BY queue, class LIMIT 1)
    UNION ALL
    SELECT n.* FROM l CROSS JOIN LATERAL (
      SELECT j.queue, j.class FROM jobs j WHERE j.wants AND NOT j.member AND (j.queue, j.class) > (l.queue, l.class)
      ORDER BY j.queue, j.class LIMIT 1) n)
  SELECT * FROM l;

-- Due, one a hand (here: lapse). Jobs without a gate are locked where they
-- are found. Members come with their gate, which is locked first; where
-- another node has it, that node does the work.
PREPARE due_lapse (bigint, int) AS
  SELECT id, version, lapse_at, payload, doc FROM jobs WHERE NOT member AND lapse_at <= $1
  ORDER BY lapse_at, id LIMIT $2 FOR UPDATE SKIP LOCKED;
PREPARE due_lapse_members (bigint, int) AS
  WITH due AS MATERIALIZED (
    SELECT id, queue, grp FROM jobs WHERE member AND lapse_at <= $1 ORDER BY lapse_at, id LIMIT $2),
  gate AS MATERIALIZED (
    SELECT g.* FROM (SELECT DISTINCT queue, grp FROM due ORDER BY 1, 2) d CROSS JOIN LATERAL (
      SELECT g.* FROM gates g WHERE g.queue = d.queue AND g.grp = d.grp FOR UPDATE SKIP LOCKED) g)
  SELECT g.*, j.* FROM due d JOIN gate g USING (queue, grp) CROSS JOIN LATERAL (
    SELECT j.id, j.version AS job_version, j.lapse_at, j.payload, j.doc AS job FROM jobs j
    WHERE j.id = d.id AND j.lapse_at <= $1 FOR UPDATE) j;

-- Next and NextRow, all of them in one answer: the soonest not before what was
-- just taken. What other nodes hold is theirs.
PREPARE next_all (bigint) AS SELECT
  (SELECT due_at FROM jobs WHERE NOT member AND due_at > $1 ORDER BY due_at LIMIT 1), (SELECT due_at FROM jobs WHERE member AND due_at > $1 ORDER BY due_at LIMIT 1),
  (SELECT lapse_at FROM jobs WHERE NOT member AND lapse_at > $1 ORDER BY lapse_at LIMIT 1), (SELECT lapse_at FROM jobs WHERE member AND lapse_at > $1 ORDER BY lapse_at LIMIT 1),
  (SELECT expire_at FROM jobs WHERE NOT member AND expire_at > $1 ORDER BY expire_at LIMIT 1), (SELECT expire_at FROM jobs WHERE member AND expire_at > $1 ORDER BY expire_at LIMIT 1),
  (SELECT purge_at FROM jobs WHERE NOT member AND purge_at > $1 ORDER BY purge_at LIMIT 1), (SELECT purge_at FROM jobs WHERE member AND purge_at > $1 ORDER BY purge_at LIMIT 1),
  (SELECT hold_at FROM gates WHERE hold_at > $1 ORDER BY hold_at LIMIT 1), (SELECT expires FROM receipts WHERE expires > $1 ORDER BY expires LIMIT 1),
  (SELECT due_at FROM rows WHERE tab = 0 AND due_at > $1 ORDER BY due_at LIMIT 1), (SELECT due_at FROM rows WHERE tab = 2 AND due_at > $1 ORDER BY due_at LIMIT 1);

-- DueRows.
PREPARE due_rows (smallint, bigint, int) AS
  SELECT tab, key, version, doc FROM rows WHERE tab = $1 AND due_at <= $2
  ORDER BY due_at, key LIMIT $3 FOR UPDATE SKIP LOCKED;
PREPARE due_gates (bigint, int) AS
  SELECT * FROM gates WHERE hold_at <= $1 ORDER BY hold_at, queue, grp LIMIT $2 FOR UPDATE SKIP LOCKED;
PREPARE due_receipts (bigint, int) AS
  SELECT hash, doc FROM receipts WHERE expires <= $1 ORDER BY expires, hash LIMIT $2 FOR UPDATE SKIP LOCKED;

-- Held, with the jobs, in id order; Holders, by jumping from name to name.
PREPARE held_by (text, uuid, int) AS
  SELECT j.id, j.version, j.payload, j.doc FROM held h JOIN jobs j ON j.id = h.job
  WHERE h.holder = $1 AND h.job > $2 ORDER BY h.job LIMIT $3 FOR UPDATE OF j;
PREPARE holders AS
  WITH RECURSIVE names AS (
    (SELECT holder FROM held ORDER BY holder LIMIT 1)
    UNION ALL
    SELECT (SELECT h.holder FROM held h WHERE h.holder > n.holder ORDER BY h.holder LIMIT 1)
    FROM names n WHERE n.holder IS NOT NULL)
  SELECT holder FROM names WHERE holder IS NOT NULL;

-- Park release (the contract has no method for it yet): a bounded batch of one
-- label. Parked members come through their gates, as in due_lapse_members; a
-- parked gate or line is one row.
PREPARE parked (text, int) AS
  SELECT id, version, payload, doc FROM jobs WHERE park = $1 AND NOT member ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED;

-- 4. Reads that change nothing ---------------------------------------------

-- List: one short walk of jobs_list for each (queue, state), merged. Without
-- queues they are those of Names; without any filter it is the primary key.
-- Sent unprepared: planned without its LIMIT, it would walk the primary key.
-- Descending is the mirror image.
PREPARE list (text[], smallint[], text[], uuid, bigint, int) AS
  SELECT l.id, l.doc FROM unnest($1) AS q(queue) CROSS JOIN unnest($2) AS s(state) CROSS JOIN LATERAL (
    SELECT j.id, j.doc FROM jobs j
    WHERE j.queue = q.queue AND j.state = s.state AND j.id > $4
      AND ($3 IS NULL OR j.type = ANY ($3)) AND (j.purge_at IS NULL OR j.purge_at > $5)
    ORDER BY j.id LIMIT $6) l
  ORDER BY l.id LIMIT $6;
PREPARE list_ids (uuid[], uuid, int) AS
  SELECT id, state, queue, type, doc FROM jobs WHERE id = ANY ($1) AND id > $2 ORDER BY id LIMIT $3;
PREPARE list_all (uuid, bigint, int) AS
  SELECT id, doc FROM jobs WHERE id > $1 AND (purge_at IS NULL OR purge_at > $2) ORDER BY id LIMIT $3;

-- Count, Depth, Names: sums of deltas; a count by ids is list_ids.
PREPARE count_jobs (text[], text[], smallint[]) AS
  SELECT coalesce(sum(jobs), 0) FROM counts
  WHERE ($1 IS NULL OR queue = ANY ($1)) AND ($2 IS NULL OR type = ANY ($2)) AND ($3 IS NULL OR state = ANY ($3));
PREPARE depth (text) AS
  SELECT state, sum(jobs), sum(bytes), sum(grouped) FROM counts WHERE queue = $1 GROUP BY state;
PREPARE names AS SELECT queue FROM counts GROUP BY queue HAVING sum(jobs) > 0 ORDER BY queue;

PREPARE members (text, text, int) AS
  SELECT id FROM jobs WHERE member AND queue = $1 AND grp = $2 ORDER BY inner_priority, inner_band, seq, id LIMIT $3;
PREPARE max_id AS SELECT id FROM jobs ORDER BY id DESC LIMIT 1;
PREPARE get_payloads (uuid[]) AS SELECT ref, body FROM payloads WHERE ref = ANY ($1);
PREPARE get_failures (uuid, bigint, int) AS
  SELECT number, doc FROM failures WHERE job = $1 AND number > $2 ORDER BY number LIMIT $3;
PREPARE page_rows (smallint, bytea, int) AS
  SELECT key, doc FROM rows WHERE tab = $1 AND key > $2 ORDER BY key LIMIT $3;

-- 5. The last round trip: write and commit ---------------------------------
-- One pipeline: what is not durable says so, every statement takes all rows
-- of the batch, and expect() refuses where a row was not as it was read.

-- Write(nil, new).
PREPARE insert_jobs (uuid[], smallint[], text[], text[], boolean[], int[], int[], smallint[], bigint[],
    boolean[], text[], int[], smallint[], bigint[], bigint[], bigint[], bigint[], text[], uuid[], bytea[]) AS
  INSERT INTO jobs SELECT n.id, 1, n.state, n.queue, n.type, n.wants, n.class, n.priority, n.band, n.seq, n.member, n.grp,
    n.ip, n.ib, n.due, n.lapse, n.expire, n.purge, n.park, n.payload, n.doc
  FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
    AS n(id, state, queue, type, wants, class, priority, band, seq, member, grp, ip, ib, due, lapse, expire, purge, park, payload, doc);

-- Write(old, new): $2 is the version that was read.
PREPARE update_jobs (uuid[], bigint[], smallint[], text[], text[], boolean[], int[], int[], smallint[], bigint[],
    boolean[], text[], int[], smallint[], bigint[], bigint[], bigint[], bigint[], text[], uuid[], bytea[]) AS
  WITH n AS MATERIALIZED (
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)
      AS n(id, version, state, queue, type, wants, class, priority, band, seq, member, grp, ip, ib, due, lapse, expire, purge, park, payload, doc)),
  locked AS MATERIALIZED (
    SELECT j.id FROM jobs j JOIN n ON j.id = n.id AND j.version = n.version ORDER BY j.id FOR UPDATE OF j),
  done AS (
    UPDATE jobs j SET version = n.version + 1, state = n.state, queue = n.queue, type = n.type, wants = n.wants,
      class = n.class, priority = n.priority, band = n.band, seq = n.seq, member = n.member, grp = n.grp, inner_priority = n.ip,
      inner_band = n.ib, due_at = n.due, lapse_at = n.lapse, expire_at = n.expire, purge_at = n.purge,
      park = n.park, payload = n.payload, doc = n.doc
    FROM n JOIN locked USING (id) WHERE j.id = n.id RETURNING 1)
  SELECT expect('update jobs', count(*), cardinality($1)) FROM done;

-- Write(old, nil), with failures and payload: the payload only while nobody
-- else refers to it (I8). Who begins to share one sets shared; that update
-- and this delete wait for each other and look again.
PREPARE delete_jobs (uuid[], bigint[]) AS
  WITH n AS MATERIALIZED (SELECT * FROM unnest($1, $2) AS n(id, version)),
  locked AS MATERIALIZED (
    SELECT j.id FROM jobs j JOIN n ON j.id = n.id AND j.version = n.version ORDER BY j.id FOR UPDATE OF j),
  done AS (DELETE FROM jobs j USING locked l WHERE j.id = l.id RETURNING 1)
  SELECT expect('delete jobs', count(*), cardinality($1)) FROM done;
PREPARE delete_failures (uuid[]) AS DELETE FROM failures WHERE job = ANY ($1);
PREPARE delete_payloads (uuid[]) AS DELETE FROM payloads WHERE ref = ANY ($1) AND NOT shared;
PREPARE share_payloads (uuid[]) AS
  WITH done AS (UPDATE payloads SET shared = true WHERE ref = ANY ($1) RETURNING 1)
  SELECT expect('share payloads', count(*), cardinality($1)) FROM done;
-- For shared ones, two statements: the second sees what the lock waited for.
PREPARE lock_shared (uuid[]) AS SELECT ref FROM payloads WHERE ref = ANY ($1) AND shared ORDER BY ref FOR UPDATE;
PREPARE sweep_shared (uuid[]) AS
  DELETE FROM payloads p WHERE p.ref = ANY ($1) AND p.shared
    AND NOT EXISTS (SELECT FROM jobs j WHERE j.id = p.ref AND j.payload = p.ref)
    AND NOT EXISTS (SELECT FROM jobs j WHERE j.payload = p.ref AND j.payload <> j.id);

PREPARE put_payloads (uuid[], bytea[]) AS INSERT INTO payloads SELECT ref, false, body FROM unnest($1, $2) AS n(ref, body);
PREPARE put_failures (uuid[], bigint[], bytea[]) AS
  INSERT INTO failures SELECT * FROM unnest($1, $2, $3)
  ON CONFLICT (job, number) DO UPDATE SET doc = excluded.doc;
PREPARE drop_failures (uuid[], bigint[]) AS
  DELETE FROM failures WHERE (job, number) IN (SELECT * FROM unnest($1, $2));

PREPARE put_held (text[], uuid[]) AS INSERT INTO held SELECT * FROM unnest($1, $2) ON CONFLICT DO NOTHING;
PREPARE drop_held (text[], uuid[]) AS DELETE FROM held WHERE (holder, job) IN (SELECT * FROM unnest($1, $2));

-- Set(Gate), and the new place of every gate the batch touched: locked since
-- the first round trip, so there is nothing to compare.
PREPARE set_gates (text[], text[], int[], int[], bigint[], boolean[], int[], int[], smallint[], bigint[], uuid[], bytea[]) AS
  UPDATE gates g SET version = g.version + 1, live = n.live, blockers = n.blockers, hold_at = n.hold, stands = n.stands,
    class = n.class, priority = n.priority, band = n.band, seq = n.seq, head = n.head, doc = n.doc
  FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
    AS n(queue, grp, live, blockers, hold, stands, class, priority, band, seq, head, doc)
  WHERE g.queue = n.queue AND g.grp = n.grp;
PREPARE unset_gates (text[], text[]) AS
  DELETE FROM gates WHERE (queue, grp) IN (SELECT * FROM unnest($1, $2));

-- Set(Row): $3 is the version that was read, 0 = it was not there. A row
-- that came meanwhile is a conflict, not overwritten.
PREPARE set_rows (smallint[], bytea[], bigint[], bigint[], bytea[]) AS
  WITH done AS (
    INSERT INTO rows AS r SELECT tab, key, version + 1, due, doc FROM unnest($1, $2, $3, $4, $5) AS n(tab, key, version, due, doc)
    ORDER BY tab, key
    ON CONFLICT (tab, key) DO UPDATE SET version = excluded.version, due_at = excluded.due_at, doc = excluded.doc
      WHERE r.version = excluded.version - 1 AND r.version > 0
    RETURNING 1)
  SELECT expect('set rows', count(*), cardinality($1)) FROM done;
PREPARE unset_rows (smallint[], bytea[]) AS DELETE FROM rows WHERE (tab, key) IN (SELECT * FROM unnest($1, $2));
-- Set(Receipt): the second of two nodes with one key fails here, runs again,
-- finds the receipt and answers "duplicate". An expired one is replaced.
PREPARE set_receipts (uuid[], bigint[], bytea[], bigint) AS
  WITH done AS (
    INSERT INTO receipts AS r SELECT * FROM unnest($1, $2, $3) AS n(hash, expires, doc) ORDER BY 1
    ON CONFLICT (hash) DO UPDATE SET expires = excluded.expires, doc = excluded.doc WHERE r.expires <= $4
    RETURNING 1)
  SELECT expect('set receipts', count(*), cardinality($1)) FROM done;
PREPARE unset_receipts (uuid[]) AS DELETE FROM receipts WHERE hash = ANY ($1);

PREPARE add_counts (text[], text[], smallint[], int, bigint[], bigint[], bigint[]) AS
  INSERT INTO counts AS c SELECT n.queue, n.type, n.state, $4, n.jobs, n.bytes, n.grouped
  FROM unnest($1, $2, $3, $5, $6, $7) AS n(queue, type, state, jobs, bytes, grouped)
  ON CONFLICT (queue, type, state, node) DO UPDATE
    SET jobs = c.jobs + excluded.jobs, bytes = c.bytes + excluded.bytes, grouped = c.grouped + excluded.grouped;

-- Commit.Wait: commits are asynchronous; one empty durable commit on a second
-- connection makes every earlier one durable, here and on synchronous standbys.
PREPARE flush AS SELECT pg_logical_emit_message(true, 'reprise', '');

-- 6. Everything once, in a committer batch, with what it must answer --------

SELECT array_agg('q' || q) AS queues, array_agg(c) AS classes FROM generate_series(0, 7) q, generate_series(1, 2) c \gset
\echo == Ready
BEGIN;
SET LOCAL synchronous_commit = off;
EXECUTE make_gates ('{strict}', '{fresh}');
CREATE TEMP TABLE got ON COMMIT DROP AS EXECUTE ready (:'queues', :'classes', 256, 256);
SELECT expect('ready in order', count(*), 256) FROM (
  SELECT id FROM got WHERE seq IN (SELECT seq FROM jobs WHERE wants AND NOT member AND class IN (1, 2)
    ORDER BY priority, band, seq, id LIMIT 256)) x;
CREATE TEMP TABLE turns ON COMMIT DROP AS EXECUTE ready_gates ('{strict}', '{1}', 100, 100);
SELECT expect('one of each group', count(DISTINCT grp), 100) FROM turns;
SELECT expect('heads of their groups', count(*), 100) FROM turns t
  WHERE head = (SELECT id FROM jobs m WHERE m.queue = t.queue AND m.grp = t.grp ORDER BY seq LIMIT 1);
\o /dev/null
EXECUTE now_ms;
EXECUTE lines;
EXECUTE lock_gates ('{strict,strict}', '{fresh,g7}', ARRAY[an_id(10000001), an_id(55)], '{w/worker-3}');
EXECUTE gate_windows ('{strict,strict}', '{fresh,g7}', ARRAY[an_id(10000001), an_id(55)], '{w/worker-3}', 3);
EXECUTE draw (500);
EXECUTE get_jobs (ARRAY[an_id(103), an_id(203), an_id(10000001)]);
EXECUTE get_rows ('{0,2}', '{q0,w/worker-1}');
EXECUTE get_receipts (ARRAY[an_id(1), an_id(5000)]);
EXECUTE due_lapse (1700000001000, 1000);
EXECUTE due_lapse_members (1700000001000, 1000);
EXECUTE next_all (1700000001000);
EXECUTE due_rows (2::smallint, 1700000001000, 1000);
EXECUTE due_gates (1700000001000, 1000);
EXECUTE due_receipts (1700003600100, 1000);
EXECUTE held_by ('w/worker-3', '00000000-0000-0000-0000-000000000000', 1000);
EXECUTE holders;
EXECUTE parked ('budget/K', 100);
EXECUTE list ('{q0,q1}', '{2,5}', NULL, an_id(1000), 0, 50);
EXECUTE list_ids (ARRAY[an_id(1), an_id(2)], an_id(0), 50);
EXECUTE list_all (an_id(1000), 0, 50);
EXECUTE count_jobs ('{q0}', NULL, '{2}');
EXECUTE depth ('q0');
EXECUTE names;
EXECUTE members ('strict', 'g1', 10);
EXECUTE max_id;
EXECUTE get_payloads (ARRAY[an_id(1), an_id(2)]);
EXECUTE get_failures (an_id(7), 0, 50);
EXECUTE page_rows (0::smallint, '', 10);
EXECUTE insert_jobs (ARRAY[an_id(90000001)], '{2}', '{q0}', '{deliver}', '{t}', '{1}', '{32768}', '{1}', '{1}',
  '{f}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', ARRAY[an_id(90000001)], '{xx}');
EXECUTE put_payloads (ARRAY[an_id(90000001)], '{body}');
EXECUTE update_jobs (ARRAY[an_id(90000001)], '{1}', '{3}', '{q0}', '{deliver}', '{f}', '{NULL}', '{32768}', '{1}', '{1}',
  '{f}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{99}', '{NULL}', '{NULL}', '{NULL}', ARRAY[an_id(90000001)], '{yy}');
EXECUTE put_held ('{w/one}', ARRAY[an_id(90000001)]);
EXECUTE drop_held ('{w/one}', ARRAY[an_id(90000001)]);
EXECUTE put_failures (ARRAY[an_id(90000001)], '{1}', '{oops}');
EXECUTE drop_failures (ARRAY[an_id(90000001)], '{1}');
EXECUTE share_payloads (ARRAY[an_id(90000001)]);
EXECUTE delete_jobs (ARRAY[an_id(90000001)], '{2}');
EXECUTE delete_failures (ARRAY[an_id(90000001)]);
EXECUTE delete_payloads (ARRAY[an_id(90000001)]);
SELECT expect('a shared payload stays', count(*), 1) FROM payloads WHERE ref = an_id(90000001);
EXECUTE lock_shared (ARRAY[an_id(90000001)]);
EXECUTE sweep_shared (ARRAY[an_id(90000001)]);
SELECT expect('until nobody refers to it', count(*), 0) FROM payloads WHERE ref = an_id(90000001);
EXECUTE set_gates ('{strict}', '{g1}', '{1}', '{0}', '{NULL}', '{f}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{x}');
EXECUTE unset_gates ('{strict}', '{fresh}');
EXECUTE set_rows ('{0,0}', '{q0,q9}', '{1,0}', '{NULL,5}', '{a,b}');
EXECUTE unset_rows ('{0}', '{q9}');
EXECUTE set_receipts (ARRAY[an_id(7777)], '{1700003600000}', '{x}', 1700000000000);
EXECUTE unset_receipts (ARRAY[an_id(7777)]);
EXECUTE add_counts ('{q0}', '{deliver}', '{2}', 1, '{5}', '{640}', '{0}');
\o
COMMIT;
\o /dev/null
EXECUTE flush;
\o

\echo == Conflicts are found
DO $$
DECLARE refused int := 0; args text;
BEGIN
  FOREACH args IN ARRAY ARRAY[
    'delete_jobs (ARRAY[an_id(1), an_id(2)], ''{1,9}'')',           -- another version
    'delete_jobs (ARRAY[an_id(999999999)], ''{1}'')',               -- gone
    'set_rows (''{0}'', ''{q0}'', ''{0}'', ''{NULL}'', ''{x}'')',   -- came meanwhile
    'set_rows (''{0}'', ''{q0}'', ''{7}'', ''{NULL}'', ''{x}'')',   -- another version
    'set_receipts (ARRAY[an_id(1)], ''{9}'', ''{x}'', 0)',          -- another node was first
    'share_payloads (ARRAY[an_id(999999999)])'] LOOP                -- deleted meanwhile
    BEGIN
      EXECUTE 'EXECUTE ' || args;
    EXCEPTION WHEN serialization_failure THEN refused := refused + 1;
    END;
  END LOOP;
  PERFORM expect('refused', refused, 6);
END $$;

-- 7. The plans of the hot ones ---------------------------------------------

SET plan_cache_mode = force_generic_plan; -- as they will run: prepared once
SELECT array_agg(an_id(n * 7)) AS ids, array_agg(1) AS ones FROM generate_series(1, 500) n \gset
\echo == ready: 8 queues of 2 classes, 256 jobs
BEGIN;
EXPLAIN (ANALYZE, BUFFERS, COSTS off, TIMING off, SUMMARY off) EXECUTE ready (:'queues', :'classes', 256, 256);
ROLLBACK;
\echo == ready_gates: 100 gates of one queue
BEGIN;
EXPLAIN (ANALYZE, BUFFERS, COSTS off, TIMING off, SUMMARY off) EXECUTE ready_gates ('{strict}', '{1}', 100, 100);
ROLLBACK;
\echo == lines
EXPLAIN (ANALYZE, BUFFERS, COSTS off, TIMING off, SUMMARY off) EXECUTE lines;
SELECT array_agg(an_id(10000000 + n)) AS members FROM generate_series(1, 500) n \gset
\echo == lock_gates, gate_windows: 500 members
BEGIN;
EXPLAIN (ANALYZE, BUFFERS, COSTS off, TIMING off, SUMMARY off) EXECUTE lock_gates ('{strict}', '{g7}', :'members', '{}');
EXPLAIN (ANALYZE, BUFFERS, COSTS off, TIMING off, SUMMARY off) EXECUTE gate_windows ('{strict}', '{g7}', :'members', '{}', 3);
ROLLBACK;
\echo == get_jobs: 500 ids
BEGIN;
EXPLAIN (ANALYZE, BUFFERS, COSTS off, TIMING off, SUMMARY off) EXECUTE get_jobs (:'ids');
ROLLBACK;
\echo == due_lapse: 1000
BEGIN;
EXPLAIN (ANALYZE, BUFFERS, COSTS off, TIMING off, SUMMARY off) EXECUTE due_lapse (1800000000000, 1000);
ROLLBACK;
\echo == due_lapse_members: 100 of 40,000
BEGIN;
UPDATE jobs SET lapse_at = 1 WHERE member AND seq % 400 = 0;
EXPLAIN (ANALYZE, BUFFERS, COSTS off, TIMING off, SUMMARY off) EXECUTE due_lapse_members (1800000000000, 1000);
ROLLBACK;
\echo == next_all
EXPLAIN (ANALYZE, BUFFERS, COSTS off, TIMING off, SUMMARY off) EXECUTE next_all (1700000000000);
\echo == held_by: 50 jobs of one holder of 40
BEGIN;
EXPLAIN (ANALYZE, BUFFERS, COSTS off, TIMING off, SUMMARY off) EXECUTE held_by ('w/worker-3', '00000000-0000-0000-0000-000000000000', 1000);
ROLLBACK;
\echo == list: 2 queues, ready and dead, page of 50
SET plan_cache_mode = force_custom_plan; -- unprepared
EXPLAIN (ANALYZE, BUFFERS, COSTS off, TIMING off, SUMMARY off)
  EXECUTE list ('{q0,q7}', '{2,5}', NULL, '00000000-0000-0000-0000-000000000000', 0, 50);
SET plan_cache_mode = force_generic_plan;
\echo == delete_jobs: 500
BEGIN;
EXPLAIN (ANALYZE, BUFFERS, COSTS off, TIMING off, SUMMARY off) EXECUTE delete_jobs (:'ids', :'ones');
ROLLBACK;

-- 8. What a happy life writes: 500 jobs a batch, a job of 128 B ----------------

CREATE FUNCTION wal(statement text) RETURNS TABLE (records int, images int, bytes int) LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
  EXECUTE 'EXPLAIN (ANALYZE, WAL, FORMAT json) EXECUTE ' || statement INTO plan;
  plan := plan -> 0 -> 'Plan';
  RETURN QUERY SELECT (plan ->> 'WAL Records')::int / 500, (plan ->> 'WAL FPI')::int, (plan ->> 'WAL Bytes')::int / 500;
END $$;
SELECT array_agg(an_id(50000000 + n)) AS i, array_agg(2) AS two, array_agg(3) AS three, array_agg('q0'::text) AS q,
  array_agg('deliver'::text) AS t, array_agg(true) AS yes, array_agg(false) AS no, array_agg(32768) AS prio, array_agg(n) AS seq,
  array_agg(NULL::int) AS none, array_agg(repeat('m', 60)) AS doc, array_agg(repeat('m', 110)) AS leased,
  array_agg(repeat('p', 128)) AS body, array_agg('a/n1/0123456789abcdef'::text) AS h
FROM generate_series(1, 500) n \gset
\echo == log records and bytes a job (and page images, which depend on the last checkpoint)
\pset format aligned
\pset tuples_only off
SELECT 'put: job' AS write, * FROM wal(format('insert_jobs (%L, %L, %L, %L, %L, %L, %L, %L, %L, %L, %11$L, %11$L, %11$L, %11$L, %11$L, %11$L, %11$L, %11$L, %1$L, %12$L)',
  :'i', :'two', :'q', :'t', :'yes', :'ones', :'prio', :'ones', :'seq', :'no', :'none', :'doc'))
UNION ALL SELECT 'put: payload', * FROM wal(format('put_payloads (%L, %L)', :'i', :'body'))
UNION ALL SELECT 'take: lock', * FROM wal(format('get_jobs (%L)', :'i'))
UNION ALL SELECT 'take: job', * FROM wal(format('update_jobs (%L, %L, %L, %L, %L, %L, %11$L, %7$L, %8$L, %9$L, %10$L, %11$L, %11$L, %11$L, %11$L, %11$L, %11$L, %11$L, %11$L, %1$L, %12$L)',
  :'i', :'ones', :'three', :'q', :'t', :'no', :'prio', :'ones', :'seq', :'no', :'none', :'leased'))
UNION ALL SELECT 'take: held', * FROM wal(format('put_held (%L, %L)', :'h', :'i'))
UNION ALL SELECT 'settle: lock', * FROM wal(format('get_jobs (%L)', :'i'))
UNION ALL SELECT 'settle: job', * FROM wal(format('delete_jobs (%L, %L)', :'i', :'two'))
UNION ALL SELECT 'settle: payload', * FROM wal(format('delete_payloads (%L)', :'i'))
UNION ALL SELECT 'settle: held', * FROM wal(format('drop_held (%L, %L)', :'h', :'i'));

DROP SCHEMA reprise_fit CASCADE;
\echo == done
