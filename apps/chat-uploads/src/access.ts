// Who may call: a workspace with its own token, for itself alone; people with an operator's. Whoever shows the token of
// another workspace hears 401, as a stranger does.
import type { AppAuth, Caller } from "holdfast";
import { isUuid } from "./refused.ts";

export const isPerson = ({ recipient, owner, role }: Caller): boolean =>
  recipient === null && owner === null && role !== "viewer";

/** For the routes under /workspaces/:id. */
export const forWorkspace: AppAuth = async (_, { params: { id }, identify }) => {
  const caller = await identify();
  if (isPerson(caller)) return true;
  // What is no workspace at all is nobody's: the route says what is wrong with it.
  return caller.recipient !== null && (!isUuid(id) || caller.recipient === id.toLowerCase());
};

export const forPeople: AppAuth = async (_, { identify }) => isPerson(await identify());
