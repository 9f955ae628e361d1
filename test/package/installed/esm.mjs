import * as main from "holdfast";
import * as guardedFetch from "holdfast/guarded-fetch";
import * as http from "holdfast/http";
import * as testing from "holdfast/testing";
import runOneJob from "./one-job.cjs";

await runOneJob({ main, http, testing, guardedFetch });
