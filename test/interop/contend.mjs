// contend.mjs LOG WHO ROUNDS RESOURCE - takes the lock ROUNDS times with npm's redlock.
//
// The masters are those of REDLOCK_MASTERS.  Ends with 1 if a round takes longer than a minute.
//
// The retries are ours, one acquire() each.  redlock 5.0.0-beta.2 retries with the same token, and
// does not release the votes that it got.  So two contenders that split the votes would block all
// until these votes expire.  A failed acquire() without retries releases its votes.

import Redlock from 'redlock';
import { argv, exit } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from './clients.mjs';
import { hold } from './hold.mjs';

const TTL_MS = 10000;
const ROUND_MAX_MS = 60000;

async function acquire(redlock, resource) {
  const end = performance.now() + ROUND_MAX_MS;
  for (;;) {
    try {
      return await redlock.acquire([resource], TTL_MS);
    } catch (error) {
      if (error.name !== 'ExecutionError') throw error;
      if (performance.now() > end) throw new Error(`no lock within ${ROUND_MAX_MS} ms`);
    }
    await sleep(50 + Math.random() * 150); // As the client of this project retries.
  }
}

async function main(log, who, rounds, resource) {
  const clients = await connect();
  const redlock = new Redlock(clients, { retryCount: 0 });
  for (let round = 1; round <= rounds; round++) {
    const lock = await acquire(redlock, resource);
    await hold(log, `${who}.${round}`);
    await lock.release();
    await sleep(50 + Math.random() * 100); // Less than pause() in run, which has the reason.
  }
  await redlock.quit();
}

const [log, who, rounds, resource] = argv.slice(2);
if (resource === undefined || !(Number(rounds) > 0)) {
  console.error('usage: contend.mjs LOG WHO ROUNDS RESOURCE');
  exit(64);
}
try {
  await main(log, who, Number(rounds), resource);
} catch (error) {
  console.error(`${who}: ${error.message}`);
  exit(1);
}
