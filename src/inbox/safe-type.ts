// A declared content type, without its parameters. What is not one becomes the type of plain bytes; nothing stays
// nothing. It is a remark for the recipient: downloads are attachments whatever it says.

const TYPE = /^[A-Za-z0-9!#$&^_.+-]{1,64}\/[A-Za-z0-9!#$&^_.+-]{1,64}$/;

export const PLAIN_BYTES = "application/octet-stream";

export function safeType(given: string): string {
  if (given === "") return "";
  if (/\p{Cc}/u.test(given)) return PLAIN_BYTES;
  const [type = ""] = given.split(";", 1);
  const bare = type.trim();
  return TYPE.test(bare) ? bare.toLowerCase() : PLAIN_BYTES;
}
