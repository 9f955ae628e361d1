// What a job came to, against what was asked for: I4, I5, I6 (results), I8, I11.
import type { Check } from "../check.ts";
import { type Facts, type JobFact, NEWEST } from "../facts.ts";
import type { Asked } from "../record.ts";

interface AboutJob {
  check: Check;
  execs: Facts["execs"];
  effects: Facts["effects"];
  charged: number;
  troubled: number;
  /** How often it came back from the dead, because somebody asked for that. */
  rises?: number;
}

export function judgeJob(job: JobFact, asked: Asked, about: AboutJob): void {
  const { check, execs, effects, charged, troubled, rises = 0 } = about;
  const name = `job ${job.n} (${job.id})`;
  // I4: what is done was run to its end, by the run that was accepted.
  if (job.state === "done") {
    check(
      "I4",
      execs.some((exec) => exec.what === "end" && exec.token === job.token),
      () => `${name} is done by ${job.token}, whose handler never ended`,
    );
    check(
      "I6",
      job.resultToken === null || job.resultToken === job.token,
      () => `${name} has the result of ${job.resultToken} and was settled by ${job.token}`,
    );
  }
  // I5: an effect that shares the commit of the completion is there once if the job is done, and otherwise not at all.
  if (asked.effect === "complete") {
    const wanted = job.state === "done" ? 1 : 0;
    check("I5", effects.length === wanted, () => `${name} is ${job.state} and has ${effects.length} effects`);
    for (const effect of effects) {
      check("I5", effect.token === job.token, () => `${name} has the effect of ${effect.token}, not of ${job.token}`);
    }
  }
  if (asked.effect === "step") {
    check("I5", effects.length <= 1, () => `${name} took its step ${effects.length} times`);
    if (job.state === "done") check("I5", effects.length === 1, () => `${name} is done without its step`);
  }
  // I8: attempts are those its payload asks for; a fault costs none. A handler that fails because a statement of its own
  // got no answer has failed: that is charged, and counted apart.
  // What ends its process is charged with that in the end, and each time that it had to be ended.
  const fails = asked.die ? job.maxAttempts : asked.fatal ? 1 + rises : Math.min(asked.fail ?? 0, job.maxAttempts);
  const own = charged - troubled;
  check("I8", job.attempt <= job.maxAttempts, () => `${name} used ${job.attempt} of ${job.maxAttempts} attempts`);
  check("I8", job.crashCount <= 3, () => `${name} has ${job.crashCount} crashes`);
  check("I8", own <= fails, () => `${name} is ${job.state}, and was charged ${own} attempts instead of ${fails}`);
  if (job.state === "done") {
    check("I8", charged >= fails, () => `${name} was charged ${charged} attempts instead of ${fails}`);
    // What runs again for a newer payload begins to count afresh.
    const isCounted =
      job.kind === NEWEST ? job.attempt >= 1 && job.attempt <= charged + 1 : job.attempt === charged + 1;
    check("I8", isCounted, () => `${name} was done in attempt ${job.attempt}, not ${charged + 1}`);
  }
  // What ends its process, or says that it is hopeless, is dead unless somebody cancelled it.
  if (asked.die || asked.fatal) {
    const isOver = job.state === "dead" || job.state === "cancelled";
    check("I8", isOver, () => `${name} should be dead, and is ${job.state}`);
  }
  if (job.state === "dead") {
    const isSpent = charged >= job.maxAttempts && (troubled > 0 || (asked.fail ?? 0) >= job.maxAttempts);
    const isPoison =
      (job.reason === "crashed" && job.crashCount === 3) || (job.reason === "timeout" && charged === job.maxAttempts);
    const isHopeless = asked.fatal === true && charged >= 1 + rises;
    const deserved = isHopeless || (asked.die === true && isPoison) || isSpent;
    check(
      "I8",
      deserved,
      () => `${name} is dead (${job.reason}, ${job.crashCount} crashes, ${charged} charged) and did not deserve it`,
    );
  }
  // I11: chunks are saved in order and once each; at most one is done again for each run that broke off.
  if (asked.effect === "chunks") {
    const items = effects.map((effect) => effect.item);
    const sorted = items.every((item, at) => at === 0 || item > items[at - 1]!);
    check("I11", sorted, () => `${name} saved its items in the order ${items.join(" ")}`);
    if (job.state === "done") {
      check("I11", items.length === asked.items, () => `${name} saved ${items.length} of ${asked.items} items`);
      // The log of handlers may say a thing twice (its own answer was lost), never another thing.
      const chunks = execs.filter((exec) => exec.what === "chunk");
      const begun = new Set(chunks.map((exec) => `${exec.token} ${exec.item}`)).size;
      const saved = new Set(chunks.map((exec) => exec.item)).size;
      const runs = new Set(execs.flatMap((exec) => (exec.what === "start" ? [exec.token] : []))).size;
      check("I11", begun - saved <= runs - 1, () => `${name} did ${begun - saved} chunks again in ${runs} runs`);
    }
  }
}
