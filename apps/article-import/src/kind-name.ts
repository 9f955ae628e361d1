// One name on both sides of every wire.
export const KIND = "articles.import";
export const QUEUE = "articles";
export const APP = "article-import";
