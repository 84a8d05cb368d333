#!/usr/bin/env node
// The driver of redlock (npm).  It must lie beside node_modules: test/interop/run --install.

import { createInterface } from 'node:readline';
import { argv, stdin } from 'node:process';
import Redis from 'ioredis';
import Redlock from 'redlock';

const pauseMs = 200; // The default of redlock.
const clients = argv.slice(2).map((place) => {
  const [host, port] = place.split(':');
  const client = new Redis({ host, port: Number(port), maxRetriesPerRequest: 1 });
  return client.on('error', () => {});
});
const redlock = new Redlock(clients, { retryJitter: 0 });
redlock.on('error', () => {});
const locks = [];

async function answer(what, ...words) {
  if (what === 'lock') {
    const retryCount = Math.floor(Number(words[2]) / pauseMs);
    const lock = await redlock.acquire([words[0]], Number(words[1]), { retryCount, retryDelay: pauseMs });
    locks.push(lock);
    return `ok ${locks.length - 1} ${lock.expiration - Date.now()} ${lock.value}`;
  }
  if (what === 'fence') return 'unsupported';
  const id = Number(words[0]);
  if (what === 'extend') {
    locks[id] = await locks[id].extend(Number(words[1]));
    return `ok ${locks[id].expiration - Date.now()}`;
  }
  await locks[id].release();
  return 'ok';
}

for await (const line of createInterface({ input: stdin })) {
  console.log(await answer(...line.split(' ')).catch(() => 'no'));
}
process.exit(0);
