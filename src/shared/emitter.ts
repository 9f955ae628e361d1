// A typed event emitter whose listeners cannot break the work: what one throws, or what its promise is rejected with, is
// caught and reported.

export type Listener<Event> = (event: Event) => void;

export interface Emitter<Events extends object> {
  on<Name extends keyof Events>(name: Name, listener: Listener<Events[Name]>): () => void;
  emit<Name extends keyof Events>(name: Name, event: Events[Name]): void;
  /** Cheap enough for a hot path: skip building an event that nobody hears. */
  has(name: keyof Events): boolean;
}

export function makeEmitter<Events extends object>(onListenerError: (error: unknown) => void): Emitter<Events> {
  const listeners = new Map<keyof Events, Set<Listener<never>>>();
  const report = (error: unknown): void => {
    try {
      onListenerError(error);
    } catch {
      // There is nowhere left to say it.
    }
  };
  return {
    on(name, listener) {
      let set = listeners.get(name);
      if (!set) listeners.set(name, (set = new Set()));
      set.add(listener);
      return () => void set.delete(listener);
    },
    emit(name, event) {
      for (const listener of listeners.get(name) ?? []) {
        try {
          const answer: unknown = (listener as (event: unknown) => unknown)(event);
          // Nobody waits for an async listener, and nobody else would catch what it throws.
          if (answer instanceof Promise) answer.catch(report);
        } catch (error) {
          report(error);
        }
      }
    },
    has: (name) => (listeners.get(name)?.size ?? 0) > 0,
  };
}
