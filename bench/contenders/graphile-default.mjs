// graphile-worker 0.18.0 as it comes.
import { setup as setupTuned } from "./graphile-worker.mjs";

/** One job at a time: about a hundred jobs a second, so it gets a fiftieth of the jobs. */
export const share = 0.02;

export const setup = (url, tuning) => setupTuned(url, tuning, true);
