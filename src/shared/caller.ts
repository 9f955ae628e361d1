// Who is asking, over HTTP.
import type { Role } from "./roles.ts";

/** Who calls over HTTP: the role and the scope of the token that was shown. */
export interface Caller {
  /** For people: the token's name. */
  name: string;
  role: Role;
  /** It may only see what is for this recipient. */
  recipient: string | null;
  /** It may only see what is this owner's. */
  owner: string | null;
}
