// What every long-lived thing promises: start twice is once; stop before start is fine; stop twice is one stop;
// stop() resolves only when nothing of it runs any more. A start that failed can be tried again.

export interface Service extends AsyncDisposable {
  start(): Promise<void>;
  stop(): Promise<void>;
}

export interface ServiceParts {
  /** After one that failed it may be called again: it begins nothing before what can fail. */
  onStart(): Promise<void>;
  onStop(): Promise<void>;
}

export function makeService(parts: ServiceParts): Service {
  let starting: Promise<void> | undefined;
  let wasStarted = false;
  let stopping: Promise<void> | undefined;
  const service: Service = {
    start() {
      if (stopping) return Promise.reject(new Error("This service was stopped; make a new one."));
      wasStarted = true;
      return (starting ??= parts.onStart().catch((error: unknown) => {
        starting = undefined;
        throw error;
      }));
    },
    stop() {
      return (stopping ??= (async () => {
        if (!wasStarted) return;
        // A start that failed has nothing to stop, but may have begun something.
        await starting?.catch(() => undefined);
        await parts.onStop();
      })());
    },
    [Symbol.asyncDispose]: () => service.stop(),
  };
  return service;
}
