// bench.mjs [--in-flight K | --contend K [--hold-ms MS]] [--cycles N | --seconds S] - lock + unlock
// cycles of npm's redlock; with --contend, K clients take turns with one lock.
//
// Prints the line that `redlock bench` prints.  The masters are those of REDLOCK_MASTERS.

import Redlock from 'redlock';
import { exit } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { connect } from './clients.mjs';

const TTL_MS = 10000;
const QUIET_CYCLES = 200; // As in `redlock bench --contend`.
// The defaults of npm's redlock.  The retries are ours: contend.mjs has the reason.
const RETRY_DELAY_MS = 200;
const RETRY_JITTER_MS = 100;

function count(text, option) {
  const value = Number(text);
  if (Number.isInteger(value) && value > 0) return value;
  console.error(`bench.mjs: ${option}: ${text}`);
  exit(64);
}

// The nearest-rank percentile of sorted samples, in ms, as microseconds.
function percentileUs(sorted, percent) {
  if (sorted.length === 0) return '0.0';
  return (sorted[Math.ceil((sorted.length * percent) / 100) - 1] * 1000).toFixed(1);
}

async function cycle(redlock, resource, figures) {
  const began = performance.now();
  try {
    const lock = await redlock.acquire([resource], TTL_MS);
    const acquired = performance.now();
    await lock.release();
    figures.acquire.push(acquired - began);
    figures.unlock.push(performance.now() - acquired);
  } catch {
    figures.errors++;
  }
}

async function slot(redlock, i, figures) {
  while (figures.left > 0 && performance.now() < figures.endMs) {
    figures.left--;
    await cycle(redlock, `bench/${i}`, figures);
  }
}

// Figures of cycles that have not begun: so many, or until an end.
function fresh(cycles, seconds) {
  const endMs = performance.now() + seconds * 1000;
  return { left: cycles, endMs, errors: 0, acquire: [], unlock: [] };
}

function slots(redlock, inFlight, figures) {
  return Promise.all(Array.from({ length: inFlight }, (_, i) => slot(redlock, i, figures)));
}

// ---- Contending ----

async function acquire(redlock, resource) {
  for (;;) {
    try {
      return await redlock.acquire([resource], TTL_MS);
    } catch (error) {
      if (error.name !== 'ExecutionError') throw error;
    }
    await sleep(RETRY_DELAY_MS + (2 * Math.random() - 1) * RETRY_JITTER_MS);
  }
}

// One of the clients that take turns.  It rests for half of the hold, as in contend.c.
// shared.released: when the latest holder began to unlock.
async function party(redlock, holdMs, shared) {
  while (shared.left-- > 0) {
    const began = performance.now();
    const lock = await acquire(redlock, 'bench/contend');
    if (began < shared.released) shared.handovers.push(performance.now() - shared.released);
    await sleep(holdMs);
    shared.released = performance.now();
    await lock.release().catch(() => shared.errors++);
    await sleep(holdMs / 2);
  }
}

async function contend(parties, cycles, holdMs) {
  const sets = await Promise.all(Array.from({ length: parties }, () => connect()));
  const locks = sets.map((clients) => new Redlock(clients, { retryCount: 0 }));
  const quiet = [];
  for (let i = 0; i < QUIET_CYCLES; i++) {
    const began = performance.now();
    const lock = await acquire(locks[0], 'bench/quiet');
    quiet.push(performance.now() - began);
    await lock.release();
    await sleep(holdMs / 2);
  }
  const shared = { left: cycles, handovers: [], errors: 0, released: 0 };
  const began = performance.now();
  await Promise.all(locks.map((redlock) => party(redlock, holdMs, shared)));
  const seconds = (performance.now() - began) / 1000;
  const sorted = Float64Array.from(shared.handovers).sort();
  console.log([
    `handovers_per_s=${(sorted.length / seconds).toFixed(0)}`,
    `handover_p50_us=${percentileUs(sorted, 50)}`,
    `handover_p99_us=${percentileUs(sorted, 99)}`,
    `quiet_acquire_p50_us=${percentileUs(Float64Array.from(quiet).sort(), 50)}`,
    `errors=${shared.errors}`,
  ].join(' '));
  await Promise.all(locks.map((redlock) => redlock.quit()));
}

function print(figures, elapsedMs, cpuUs) {
  const acquire = Float64Array.from(figures.acquire).sort();
  const unlock = Float64Array.from(figures.unlock).sort();
  const cycles = Math.max(unlock.length, 1);
  console.log([
    `cycles_per_s=${(unlock.length / (elapsedMs / 1000)).toFixed(0)}`,
    `acquire_p50_us=${percentileUs(acquire, 50)}`,
    `acquire_p99_us=${percentileUs(acquire, 99)}`,
    `unlock_p50_us=${percentileUs(unlock, 50)}`,
    `unlock_p99_us=${percentileUs(unlock, 99)}`,
    `cpu_us_per_cycle=${((cpuUs.user + cpuUs.system) / cycles).toFixed(2)}`,
    `errors=${figures.errors}`,
  ].join(' '));
}

const { values } = parseArgs({
  options: {
    'in-flight': { type: 'string', default: '1' },
    cycles: { type: 'string', default: '5000' },
    seconds: { type: 'string' },
    contend: { type: 'string' },
    'hold-ms': { type: 'string', default: '5' },
  },
});
if (values.contend !== undefined) {
  await contend(count(values.contend, '--contend'), count(values.cycles, '--cycles'),
    count(values['hold-ms'], '--hold-ms'));
  exit(0);
}
const inFlight = count(values['in-flight'], '--in-flight');
const seconds = Number(values.seconds ?? Infinity);
const cycles = values.seconds === undefined ? count(values.cycles, '--cycles') : Infinity;
const redlock = new Redlock(await connect(), { retryCount: 0 });
redlock.on('error', () => {}); // Counted where the cycle fails.
await cycle(redlock, 'bench/warm-up', fresh(1, Infinity)); // Loads the scripts.
if (values.seconds !== undefined) await slots(redlock, inFlight, fresh(Infinity, seconds / 4));

const figures = fresh(cycles, seconds);
const began = performance.now();
const cpuBegan = process.cpuUsage();
await slots(redlock, inFlight, figures);
const elapsedMs = performance.now() - began;
print(figures, elapsedMs, process.cpuUsage(cpuBegan));
exit(0); // A client of a master that is down would go on to connect.
