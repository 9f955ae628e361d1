// useData(key, load): what a screen shows. Keeps what it had while it looks again, and says when that failed.
import { useEffect, useRef, useState } from "preact/hooks";
import { CallError } from "./call.ts";
import { isPaused, refresh, tick } from "./live.ts";

export interface Data<T> {
  value: T | undefined;
  error: CallError | undefined;
  /** Look again now. */
  again(): void;
}

/** Another `key` is another question: what was shown before goes away. */
export function useData<T>(key: string, load: (signal: AbortSignal) => Promise<T>): Data<T> {
  const [state, set] = useState<{ key: string; value?: T; error?: CallError }>({ key });
  const [asked, ask] = useState(0);
  const busy = useRef<AbortController | undefined>(undefined);
  const latest = useRef(load);
  latest.current = load;
  const beat = tick.value;

  useEffect(() => {
    busy.current?.abort();
    busy.current = undefined;
  }, [key]);

  useEffect(() => {
    // One question at a time: a slow answer is waited for.
    if (busy.current) return;
    const mine = (busy.current = new AbortController());
    latest
      .current(mine.signal)
      .then((value) => {
        if (!mine.signal.aborted) set({ key, value });
      })
      .catch((error: unknown) => {
        if (mine.signal.aborted) return;
        const told = error instanceof CallError ? error : new CallError(0, "FAULT", String(error), "");
        set((before) => ({ key, value: before.key === key ? before.value : undefined, error: told }));
        if (told.status === 0 || told.status >= 500) setTimeout(() => !isPaused.value && refresh(), 2_000);
      })
      .finally(() => {
        if (busy.current === mine) busy.current = undefined;
      });
  }, [key, beat, asked]);

  useEffect(() => () => busy.current?.abort(), []);

  const isSame = state.key === key;
  return {
    value: isSame ? state.value : undefined,
    error: isSame ? state.error : undefined,
    again: () => {
      busy.current?.abort();
      busy.current = undefined;
      ask((count) => count + 1);
    },
  };
}
