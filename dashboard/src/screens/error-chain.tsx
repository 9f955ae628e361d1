// An error with its causes, each with its stack folded away.
import type { Output } from "../api/call.ts";

export type Failure = NonNullable<Output<"readJob">["lastError"]>;

/** The error, and what caused it, and what caused that. */
export function ErrorChain({ error }: { error: Failure }) {
  const links: Failure[] = [];
  for (let link: Failure | undefined = error; link && links.length < 10; link = link.cause) links.push(link);
  return (
    <ol class="chain">
      {links.map((link, index) => (
        <li key={index}>
          <p class="error-line">
            {index > 0 && <span class="quiet">caused by </span>}
            <strong>{link.name}</strong>
            {link.code && <span class="chip">{link.code}</span>} <span class="wrap">{link.message}</span>
          </p>
          {link.stack && (
            <details>
              <summary>Stack</summary>
              <pre class="stack-trace" tabIndex={0}>
                {link.stack}
              </pre>
            </details>
          )}
        </li>
      ))}
    </ol>
  );
}
