// A file name that is safe everywhere: in a header, on a screen, in any file system. Whoever saves a parcel applies it
// again: a name from elsewhere is never trusted.

const LONGEST = 100;
const LONGEST_EXTENSION = 16;

export function safeName(given: string): string {
  const base = given.slice(Math.max(given.lastIndexOf("/"), given.lastIndexOf("\\")) + 1);
  // By character, not by half of one.
  const plain = Array.from(base, (character) => (/^[A-Za-z0-9._-]$/.test(character) ? character : "_")).join("");
  const name = plain.length <= LONGEST ? plain : shortened(plain);
  return name === "" || name === "." || name === ".." ? "file" : name;
}

function shortened(name: string): string {
  const dot = name.lastIndexOf(".");
  const extension = dot > 0 && name.length - dot <= LONGEST_EXTENSION ? name.slice(dot) : "";
  return name.slice(0, LONGEST - extension.length) + extension;
}
