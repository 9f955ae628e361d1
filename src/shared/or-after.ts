// A signal that is aborted with another one, or after so long. Not by AbortSignal.timeout(): if nobody but AbortSignal.any()
// knows of it, Node 20 collects it as garbage, and the time never comes.

export function orAfter(ms: number, ...signals: AbortSignal[]): AbortSignal {
  const late = new AbortController();
  setTimeout(() => late.abort(new DOMException(`It took longer than ${ms} ms.`, "TimeoutError")), ms).unref();
  return AbortSignal.any([...signals, late.signal]);
}
