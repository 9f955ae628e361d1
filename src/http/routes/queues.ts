// /api/v1/queues and /api/v1/stats.
import type { Holdfast } from "../../client/client.ts";
import { queueContracts } from "../contracts/queues.ts";
import { iso } from "../job-view.ts";
import { route } from "./route.ts";

export function makeQueueRoutes(hf: Holdfast) {
  return {
    listQueues: route(queueContracts.listQueues, async () => ({
      body: {
        queues: (await hf.queues.list()).map((queue) => ({
          ...queue,
          oldestReadyAt: iso(queue.oldestReadyAt),
          takenAt: iso(queue.takenAt),
          pausedAt: iso(queue.pausedAt),
        })),
      },
    })),
    pauseQueue: route(queueContracts.pauseQueue, async ({ params: { queue } }, { caller }) => ({
      body: { queue, paused: true, changed: await hf.queues.pause(queue, { by: caller.name }) },
    })),
    resumeQueue: route(queueContracts.resumeQueue, async ({ params: { queue } }) => ({
      body: { queue, paused: false, changed: await hf.queues.resume(queue) },
    })),
    readLatency: route(queueContracts.readLatency, async ({ query }) => ({
      body: { points: (await hf.stats.latency(query)).map((point) => ({ ...point, at: point.at.toISOString() })) },
    })),
    readKindStats: route(queueContracts.readKindStats, async ({ query }) => ({
      body: { kinds: await hf.stats.kinds(query) },
    })),
    readStats: route(queueContracts.readStats, async ({ query }) => {
      const [runs, depths] = await Promise.all([hf.stats.runs(query), hf.stats.depths(query)]);
      return {
        body: {
          runs: runs.map((point) => ({ ...point, at: point.at.toISOString() })),
          depths: depths.map((point) => ({ ...point, at: point.at.toISOString() })),
        },
      };
    }),
  };
}
