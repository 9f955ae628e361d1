// Hot tables stay free of dead rows, and the embedded tier's log is cut: where nobody else does it.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openSession, type Session } from "../support/locks.ts";
import { useHoldfast, type Bench } from "../support/open-test.ts";
import { until } from "../long/scene.ts";

async function run(bench: Bench): Promise<Record<string, number>> {
  const [result] = await bench.hf.janitor.run("vacuum");
  if (!result?.ran || result.error !== null) throw new Error(JSON.stringify(result));
  return result.rows;
}

describe("vacuum (server)", () => {
  const bench = useHoldfast("server");
  let session: Session;
  beforeAll(async () => {
    session = await openSession(bench.url);
    await bench.db.script("alter table holdfast.jobs set (autovacuum_enabled = off)");
  });
  afterAll(() => session.close());

  const deadRows = async (): Promise<number> => {
    const { rows } = await bench.db.query<{ dead: number }>(
      "select n_dead_tup::integer as dead from pg_stat_user_tables where schemaname = 'holdfast' and relname = 'jobs'",
    );
    return rows[0]!.dead;
  };
  const leaveDeadRows = async (): Promise<void> => {
    await bench.db.script(
      `insert into holdfast.jobs (id, run_at, created_at, max_attempts, rank, kind, queue, payload)
         select gen_random_uuid(), now(), now(), 5, 0, 'k', 'q', '{}' from generate_series(1, 3000);
       delete from holdfast.jobs`,
    );
    await until("the dead rows are known", async () => (await deadRows()) >= 3_000);
  };

  test("a hot table with many dead rows is vacuumed, others are left alone", async () => {
    expect(await run(bench)).toEqual({});
    await leaveDeadRows();
    expect(await run(bench)).toEqual({ tables: 1 });
    await until("they are gone", async () => (await deadRows()) === 0);
    expect(await run(bench)).toEqual({});
    const { runs } = await bench.hf.janitor.history({ chore: "vacuum" });
    expect(runs.map(({ rows }) => rows)).toEqual([{ tables: 1 }]);
  });

  test("a table that somebody had locked is vacuumed once it is free, and not only after the pause of those that cannot be", async () => {
    await leaveDeadRows();
    await session.query("begin; lock table holdfast.jobs in share update exclusive mode");
    await run(bench);
    await session.query("commit");
    expect(await deadRows()).toBeGreaterThanOrEqual(3_000);
    expect(await run(bench)).toEqual({ tables: 1 });
    await until("they are gone", async () => (await deadRows()) === 0);
  });

  test("while somebody holds an old snapshot it is not tried again and again", async () => {
    await session.query("begin isolation level repeatable read; select count(*) from holdfast.jobs");
    await leaveDeadRows();
    expect(await run(bench)).toEqual({ tables: 1 });
    await until("its statistics are there", async () => (await deadRows()) >= 3_000);
    expect(await run(bench)).toEqual({});
    await session.query("commit");
  });
});

describe("vacuum and checkpoint (embedded)", () => {
  const bench = useHoldfast("embedded");

  const checkpointAt = async (): Promise<number> => {
    const { rows } = await bench.db.query<{ at: number }>(
      "select (redo_lsn - '0/0'::pg_lsn)::float8 as at from pg_control_checkpoint()",
    );
    return rows[0]!.at;
  };

  test("come when much was written, and not before", async () => {
    const before = await checkpointAt();
    // Whatever the first start wrote.
    await run(bench);
    expect(await run(bench)).toEqual({});
    await bench.db.script("create table holdfast.scratch (text text)");
    const write = (rows: number) =>
      bench.db.query(
        "insert into holdfast.scratch select string_agg(md5(random()::text), '') from generate_series(1, $1) a, generate_series(1, 30) b group by a",
        [rows],
        { timeoutMs: 60_000 },
      );
    await write(20_000);
    expect(await run(bench)).toMatchObject({ vacuums: 1 });
    for (let n = 0; n < 3; n += 1) await write(20_000);
    expect(await run(bench)).toEqual({ vacuums: 1, checkpoints: 1 });
    expect(await checkpointAt()).toBeGreaterThan(before + 64 * 1_048_576);
    expect(await run(bench)).toEqual({});
    await bench.db.script("drop table holdfast.scratch");
  }, 60_000);
});
