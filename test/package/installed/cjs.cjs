const main = require("holdfast");
const guardedFetch = require("holdfast/guarded-fetch");
const http = require("holdfast/http");
const testing = require("holdfast/testing");
const runOneJob = require("./one-job.cjs");

void runOneJob({ main, http, testing, guardedFetch });
