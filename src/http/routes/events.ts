// /api/v1/events.
import { OptionInvalid } from "../../errors.ts";
import { eventContracts } from "../contracts/events.ts";
import { type EventHub, STREAMED } from "../event-hub.ts";
import { mediaRoute } from "./route.ts";

export function makeEventRoutes(hub: EventHub) {
  return {
    streamEvents: mediaRoute(
      eventContracts.streamEvents,
      async ({ query: { type, kind, queue, job } }, { request }) => {
        const types = type === undefined ? null : new Set(type.split(",").map(toType));
        const filter = { types, kind, queue, job: job?.toLowerCase() };
        const headers = { "content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no" };
        // A HEAD is a question about the headers; a stream that nobody reads would stay open.
        if (request.method === "HEAD") return new Response(null, { headers });
        return new Response(hub.open(filter, request.headers.get("last-event-id")), { headers });
      },
    ),
  };
}

function toType(text: string): string {
  if (STREAMED.some((name) => name === text)) return text;
  throw new OptionInvalid(`type is ${JSON.stringify(text)}.`, `Give some of ${STREAMED.join(", ")}.`);
}
