// The plans that really ran, also inside routines: auto_explain hands them over as notices.
import { Client } from "pg";
import type { Store } from "#src/store/sql.js";

export interface PlanNode {
  "Node Type": string;
  "Relation Name"?: string;
  "Actual Rows"?: number;
  "Actual Loops"?: number;
  "Rows Removed by Filter"?: number;
  "Rows Removed by Index Recheck"?: number;
  Plans?: PlanNode[];
}

export interface Explained {
  /** How many statements were explained. */
  plans: number;
  /** Sequential scans of watched tables that read anything, each with how many rows. */
  seqScans: string[];
  /** Rows read from watched tables, those that were thrown away included. */
  visited: number;
  detail: string;
}

/** One connection whose statements are explained. Plans that routines make on it stay in its cache. */
export class Session {
  readonly client: Client;
  readonly store: Store;
  readonly #watched: RegExp;
  #nodes: PlanNode[] = [];
  #plans = 0;

  private constructor(url: string, store: Store, watched: RegExp) {
    this.#watched = watched;
    this.client = new Client({ connectionString: url });
    this.client.on("notice", ({ message }) => this.#hear(message ?? ""));
    this.store = store.on({
      query: async <Row>(text: string, values: readonly unknown[] = []) => {
        const { rows, rowCount } = await this.client.query({ text, values: [...values] });
        return { rows: rows as Row[], rowCount: rowCount ?? 0 };
      },
    });
  }

  /** `watched`: the tables that nothing may walk through. */
  static async open(url: string, store: Store, watched: RegExp): Promise<Session> {
    const session = new Session(url, store, watched);
    await session.client.connect();
    await session.client.query(`
      load 'auto_explain';
      set auto_explain.log_min_duration = 0;
      set auto_explain.log_nested_statements = on;
      set auto_explain.log_analyze = on;
      set auto_explain.log_timing = off;
      set auto_explain.log_format = 'json';
      set auto_explain.log_level = 'notice';
      set client_min_messages = 'notice'`);
    return session;
  }

  #hear(message: string): void {
    const plan = readPlan(message);
    if (!plan) return;
    this.#plans += 1;
    this.#nodes.push(...plan);
  }

  /** Runs it, tells what was read, and undoes it. */
  async explain(work: (store: Store) => Promise<unknown>): Promise<Explained> {
    await this.client.query("begin");
    this.#nodes = [];
    this.#plans = 0;
    try {
      await work(this.store);
      // A select that has parameters is over, and explained, when the next statement comes.
      await this.client.query("savepoint over");
      const nodes = this.#nodes.filter((node) => this.#watched.test(node["Relation Name"] ?? ""));
      const lines = nodes.map((node) => `${node["Node Type"]} on ${node["Relation Name"]}: ${rowsOf(node)}`);
      return {
        plans: this.#plans,
        seqScans: lines.filter((line) => /^Seq Scan.*: [1-9]/.test(line)),
        visited: nodes.reduce((sum, node) => sum + rowsOf(node), 0),
        detail: lines.join("; "),
      };
    } finally {
      await this.client.query("rollback");
    }
  }
}

/** What auto_explain said in a notice, every node of it; undefined: the notice is about something else. */
export function readPlan(message: string): PlanNode[] | undefined {
  if (!message.includes("plan:")) return undefined;
  return flatten((JSON.parse(message.slice(message.indexOf("{"))) as { Plan: PlanNode }).Plan);
}

const flatten = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(flatten)];

export function rowsOf(node: PlanNode): number {
  // What an update, delete or insert did is counted where its rows were found.
  if (node["Node Type"] === "ModifyTable") return 0;
  const perLoop =
    (node["Actual Rows"] ?? 0) + (node["Rows Removed by Filter"] ?? 0) + (node["Rows Removed by Index Recheck"] ?? 0);
  return Math.ceil(perLoop * (node["Actual Loops"] ?? 1));
}
