// Runs in a thread of its own: the text of a document in, its operations out. JSON, or YAML (which JSON almost is).
//
// References are followed inside the document only; nothing is fetched and no file is read. What the document's own schema
// says against it is listed and does not keep it out: many that are in use are not valid to the letter.
import { parentPort, workerData } from "node:worker_threads";
import { Validator } from "@seriousme/openapi-schema-validator";
import { parse as parseYaml } from "yaml";

const METHODS = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];
const MOST_PROBLEMS = 5;
const LONGEST = { summary: 500, description: 4_000, content: 4_000, parameter: 120, path: 1_000 };
/** It is part of a key, and an index takes 2,704 bytes for all of one. */
const MOST_PATH_BYTES = 2_000;
/** One anchor can be used for each operation. A bomb, where each stands for many others, is far beyond at its fifth level. */
const MOST_ALIASES = 20_000;

class Unreadable extends Error {}

function readText(text) {
  const start = text.trimStart();
  if (start === "") throw new Unreadable("The document is empty.");
  if (start.startsWith("{")) {
    try {
      return JSON.parse(text);
    } catch (error) {
      throw new Unreadable(`The document is not JSON: ${error.message}`);
    }
  }
  try {
    return parseYaml(text, { maxAliasCount: MOST_ALIASES, merge: true, logLevel: "error" });
  } catch (error) {
    throw new Unreadable(`The document is neither JSON nor YAML: ${String(error.message).split("\n")[0]}`);
  }
}

function formatOf(document) {
  const [openapi, swagger] = [plain(document.openapi), plain(document.swagger)];
  // Without quotes, YAML makes a number of it: 3.0 is 3 then.
  const [version] = /^3\.[01](?=\.|$)|^3$/.exec(openapi ?? "") ?? [];
  if (version) return `OpenAPI ${version === "3" ? "3.0" : version}`;
  if (swagger === "2.0" || swagger === "2") return "Swagger 2.0";
  const said = openapi ?? swagger;
  throw new Unreadable(
    said === undefined
      ? 'The document says neither "openapi" nor "swagger".'
      : `The document is of version ${JSON.stringify(said.slice(0, 100))}; 3.0, 3.1 and Swagger 2.0 are read.`,
  );
}

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
/** Without what a database cannot keep: zeros, and halves of characters, which a cut can make. */
const storable = (text, longest) => text.replaceAll("\0", "").trim().slice(0, longest).toWellFormed();
const textOf = (value, longest) => (typeof value === "string" ? storable(value, longest) : "");

/** A text, or a number as text; whatever else a document has there is nothing. */
const plain = (value) => (typeof value === "number" ? String(value) : typeof value === "string" ? value : undefined);

/** Itself, or what it refers to; undefined if that is not in the document. */
function follow(document, value, hops = 0) {
  if (!isObject(value) || typeof value.$ref !== "string") return isObject(value) ? value : undefined;
  if (!value.$ref.startsWith("#/") || hops > 10) return undefined;
  let target = document;
  for (const part of value.$ref.slice(2).split("/")) {
    let name = part;
    try {
      name = decodeURIComponent(part);
    } catch {
      // As it is written, then.
    }
    name = name.replaceAll("~1", "/").replaceAll("~0", "~");
    if (target === null || typeof target !== "object" || !Object.hasOwn(target, name)) return undefined;
    target = target[name];
  }
  return follow(document, target, hops + 1);
}

/** "listForRepo", "repos/list_for-repo": as words. */
const asWords = (name) =>
  name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim();

function readOperation(document, method, path, shared, operation) {
  const operationId = textOf(operation.operationId, 300) || null;
  const summary = textOf(operation.summary, LONGEST.summary);
  const description = textOf(operation.description, LONGEST.description);
  const tags = (Array.isArray(operation.tags) ? operation.tags : [])
    .map((tag) => textOf(tag, 100))
    .filter(Boolean)
    .slice(0, 20);
  const parameters = [...shared, ...(Array.isArray(operation.parameters) ? operation.parameters : [])]
    .map((parameter) => follow(document, parameter))
    .filter((parameter) => parameter !== undefined && typeof parameter.name === "string")
    .map(({ name, description: about }) => `${asWords(textOf(name, 100))}: ${textOf(about, LONGEST.parameter)}`);
  const names = asWords(`${operationId ?? ""} ${path}`);
  const content = storable(
    [
      `${method.toUpperCase()} ${path}`,
      names,
      summary,
      tags.join(", "),
      description,
      ...(parameters.length > 0 ? ["Parameters", ...parameters] : []),
    ]
      .filter(Boolean)
      .join("\n"),
    LONGEST.content,
  );
  return { method: method.toUpperCase(), path, operationId, summary, description, tags, names, content };
}

function readOperations(document, mostOperations) {
  const found = [];
  const paths = isObject(document.paths) ? document.paths : {};
  for (const [path, given] of Object.entries(paths)) {
    const item = follow(document, given);
    if (!item || !path.startsWith("/")) continue;
    const shared = Array.isArray(item.parameters) ? item.parameters : [];
    for (const method of METHODS) {
      const operation = item[method];
      if (!isObject(operation)) continue;
      const clean = Buffer.from(storable(path, LONGEST.path)).subarray(0, MOST_PATH_BYTES).toString();
      found.push(readOperation(document, method, clean, shared, operation));
      if (found.length > mostOperations)
        throw new Unreadable(`The document has more than ${mostOperations} operations.`);
    }
  }
  return found;
}

async function findProblems(document) {
  try {
    const { valid, errors } = await new Validator().validate(document);
    if (valid) return [];
    const list = Array.isArray(errors) ? errors : [{ message: String(errors) }];
    const said = list
      .slice(0, MOST_PROBLEMS)
      .map(({ instancePath = "", message = "" }) => textOf(`${instancePath} ${message}`, 300));
    return list.length > MOST_PROBLEMS ? [...said, `and ${list.length - MOST_PROBLEMS} more`] : said;
  } catch (error) {
    return [textOf(`It could not be checked: ${error.message}`, 300)];
  }
}

async function read({ text, mostOperations }) {
  const document = readText(text);
  if (!isObject(document)) throw new Unreadable("The document is not an object.");
  const format = formatOf(document);
  const operations = readOperations(document, mostOperations);
  const info = isObject(document.info) ? document.info : {};
  const problems = await findProblems(document);
  return {
    format,
    title: textOf(info.title, 300),
    version: textOf(plain(info.version), 100),
    operations,
    problems,
  };
}

try {
  parentPort.postMessage({ document: await read(workerData) });
} catch (error) {
  if (error instanceof Unreadable) parentPort.postMessage({ unreadable: error.message });
  else throw error;
}
