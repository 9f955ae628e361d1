// Asks the server to stop the statement of a connection we gave up, so that what nobody waits for does not keep its
// locks and its CPU. Best effort, in the background, over by itself after two seconds; no error leaves this file.
import { Connection, type ConnectionConfig } from "pg";

export interface CancelTarget {
  host: string;
  port: number;
  ssl: ConnectionConfig["ssl"];
  sslNegotiation: string;
  processID: number | null;
  secretKey: number | null;
}

const LIMIT_MS = 2_000;

/** With the methods that pg's types leave out. */
class CancelConnection extends Connection {
  declare connect: (portOrSocket: number | string, host?: string) => void;
  declare requestSsl: () => void;
  declare cancel: (processID: number, secretKey: number) => void;
}

export function cancelStatement({ host, port, ssl, sslNegotiation, processID, secretKey }: CancelTarget): void {
  if (processID === null || secretKey === null) return;
  const config = { ssl, sslNegotiation };
  const connection = new CancelConnection(config);
  const timer = setTimeout(() => connection.stream.destroy(), LIMIT_MS);
  const send = (): void => {
    connection.cancel(processID, secretKey);
    connection.stream.end();
  };
  connection.on("error", () => connection.stream.destroy());
  connection.on("end", () => clearTimeout(timer));
  connection.on("connect", () => {
    if (!ssl) send();
    else if (sslNegotiation !== "direct") connection.requestSsl();
  });
  connection.on("sslconnect", send);
  if (host.startsWith("/")) connection.connect(`${host}/.s.PGSQL.${port}`);
  else connection.connect(port, host);
}
