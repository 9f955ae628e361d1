// The door of the app: re-exports only.
export { telegramGateway } from "./gateway.ts";
export { StandIn, type Delivery, type SentMessage, type StandInOptions } from "./stand-in.ts";
export type { Answer, BotOptions, GatewayOptions, HandlerContext, HandlerFunction, Texts } from "./config/bot.ts";
export type { Update } from "./update.ts";
