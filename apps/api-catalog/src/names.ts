// What things are called outside of this app: rows, addresses and logs keep these names.
export const APP = "api-catalog";
export const KIND = "catalog.embed";
