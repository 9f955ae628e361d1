import type { Holdfast } from "../client/client.ts";
import { WaitTimeout } from "../errors.ts";
import type { HoldfastEvents } from "../metrics/events.ts";
import { durationMs, type Duration } from "../shared/duration.ts";

/** How long `waitForEvent` waits. */
export interface WaitForEventOptions {
  timeout?: Duration;
}

/** The next event of this name that matches. Call it before what causes the event: what has happened is not repeated. */
export function waitForEvent<Name extends keyof HoldfastEvents>(
  hf: Holdfast,
  name: Name,
  matches: (event: HoldfastEvents[Name]) => boolean = () => true,
  { timeout = "5s" }: WaitForEventOptions = {},
): Promise<HoldfastEvents[Name]> {
  const timeoutMs = durationMs("waitForEvent() timeout", timeout);
  return new Promise((resolve, reject) => {
    let seen = 0;
    const settle = (act: () => void): void => {
      clearTimeout(timer);
      stop();
      act();
    };
    const timer = setTimeout(() => {
      const others = seen === 0 ? "none at all" : `${seen} that did not match`;
      const message = `No ${name} event that matches came within ${timeout}: ${others}.`;
      settle(() => reject(new WaitTimeout(message, "Call waitForEvent() before what causes the event.")));
    }, timeoutMs);
    const stop = hf.on(name, (event) => {
      try {
        if (matches(event)) settle(() => resolve(event));
        else seen += 1;
      } catch (error) {
        settle(() => reject(error instanceof Error ? error : new Error(String(error))));
      }
    });
  });
}
