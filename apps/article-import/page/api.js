// The importer's own routes.
import { call as callServer } from "/apps/page.js";

export const call = (method, path, body) => callServer(method, `/article-import${path}`, body);
