/** Null and undefined are "not given". What remains is checked by the client, whoever calls it. */
export function given<Options extends object>(options: object): Options {
  const filled = Object.entries(options).filter(([, value]) => value !== null && value !== undefined);
  return Object.fromEntries(filled) as Options;
}
