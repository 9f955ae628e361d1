// A typed event emitter whose listeners cannot break the work: an exception in one is caught and reported once.

export type Listener<Event> = (event: Event) => void;

export interface Emitter<Events extends object> {
  on<Name extends keyof Events>(name: Name, listener: Listener<Events[Name]>): () => void;
  emit<Name extends keyof Events>(name: Name, event: Events[Name]): void;
  /** Cheap enough for a hot path: skip building an event that nobody hears. */
  has(name: keyof Events): boolean;
}

export function makeEmitter<Events extends object>(onListenerError: (error: unknown) => void): Emitter<Events> {
  const listeners = new Map<keyof Events, Set<Listener<never>>>();
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
          (listener as Listener<unknown>)(event);
        } catch (error) {
          onListenerError(error);
        }
      }
    },
    has: (name) => (listeners.get(name)?.size ?? 0) > 0,
  };
}
