// check.mjs LOG | --self-test - no two holds overlap, and both kinds had turns.
//
// The log is that of hold.mjs; "npm-1.7" is the seventh hold of the first contender of the kind
// npm.  The rules of a log:
// - enter and leave alternate, each pair by one holder, and the last line is a leave;
// - times never go back from line to line, so no two holds overlap by the clock either;
// - at least HOLDS_MIN holds of each kind, and at least HANDOVERS_MIN changes from one kind to the
//   other: if one kind runs after the other, they do not contend.
//
// --self-test checks the checker: it must name the fault of each made-up log.

import { readFileSync } from 'node:fs';
import { argv, exit } from 'node:process';

const KINDS = ['c', 'npm'];
const HOLDS_MIN = 20;
const HANDOVERS_MIN = 10;

function parse(text) {
  if (!text.endsWith('\n')) throw new Error('the log is empty or its last line is cut off');
  return text.slice(0, -1).split('\n').map((line, i) => {
    const match = /^(\d+) (enter|leave) ((\w+)-\d+\.\d+)$/.exec(line);
    if (match === null || !KINDS.includes(match[4]))
      throw new Error(`line ${i + 1} is malformed: ${line}`);
    return { line: i + 1, ns: BigInt(match[1]), what: match[2], who: match[3], kind: match[4] };
  });
}

// The holds in order.  Throws on the first sign that two of them were not exclusive.
function holds(events) {
  const found = [];
  let holder = null;
  let last = 0n;
  for (const { line, ns, what, who, kind } of events) {
    if (ns < last) throw new Error(`line ${line}: time goes back: ${who} overlaps`);
    if (what === 'enter' && holder !== null)
      throw new Error(`line ${line}: ${who} enters while ${holder} is inside`);
    if (what === 'leave' && holder !== who)
      throw new Error(`line ${line}: ${who} leaves, but ${holder ?? 'nobody'} is inside`);
    if (what === 'enter') found.push({ who, kind });
    holder = what === 'enter' ? who : null;
    last = ns;
  }
  if (holder !== null) throw new Error(`${holder} never leaves`);
  return found;
}

// Returns a line of counts, or throws the first fault.
function check(text) {
  const found = holds(parse(text));
  const counts = KINDS.map((kind) => found.filter((hold) => hold.kind === kind).length);
  const handovers = found.filter((hold, i) => i > 0 && hold.kind !== found[i - 1].kind).length;
  const names = new Set(found.map((hold) => hold.who));
  if (names.size !== found.length) throw new Error('a hold is in the log twice');
  KINDS.forEach((kind, i) => {
    if (counts[i] < HOLDS_MIN)
      throw new Error(`only ${counts[i]} holds by ${kind}, not ${HOLDS_MIN}`);
  });
  if (handovers < HANDOVERS_MIN)
    throw new Error(`only ${handovers} handovers between the kinds, not ${HANDOVERS_MIN}`);
  const seen = KINDS.map((kind, i) => `${counts[i]} holds by ${kind}`).join(', ');
  return `${seen}, ${handovers} handovers, no overlap`;
}

// `n` holds of each kind in turn, as lines, 10 ns apart.
function goodLog(n = HOLDS_MIN, runLength = 1) {
  const lines = [];
  for (let i = 0; i < 2 * n; i++) {
    const kind = KINDS[Math.floor(i / runLength) % 2];
    const at = 1000 + 20 * i;
    lines.push(`${at} enter ${kind}-1.${i}`, `${at + 10} leave ${kind}-1.${i}`);
  }
  return lines;
}

// A good log with `count` lines from the index `at` on replaced by `lines`.
function spoiled(at, count, ...lines) {
  const log = goodLog();
  log.splice(at, count, ...lines);
  return log;
}

function selfTest() {
  const cases = [
    ['nothing wrong', goodLog(), null],
    ['an enter inside a hold', spoiled(11, 0, '1105 enter npm-2.1'), /enters while .* is inside/],
    ['a whole hold inside a hold', spoiled(11, 0, '1103 enter npm-2.1', '1105 leave npm-2.1'),
      /enters while .* is inside/],
    ['a leave by another', spoiled(11, 1, '1110 leave npm-2.1'), /leaves, but npm-1.5 is inside/],
    ['a leave without enter', spoiled(12, 0, '1115 leave c-1.5'), /leaves, but nobody is inside/],
    ['overlap by the clock only', spoiled(12, 1, '1105 enter c-1.6'), /time goes back/],
    ['a holder that never leaves', goodLog().slice(0, -1), /never leaves/],
    ['a line cut off', spoiled(11, 1, '1110 lea'), /malformed/],
    ['a kind unknown', spoiled(10, 2, '1100 enter go-1.5', '1110 leave go-1.5'), /malformed/],
    ['the same hold twice', spoiled(12, 0, '1110 enter c-1.4', '1110 leave c-1.4'), /twice/],
    ['one hold too few', goodLog(HOLDS_MIN - 1), /only 19 holds by c, not 20/],
    ['one kind missing', goodLog().filter((line) => line.includes(' c-')), /only 0 holds by npm/],
    ['one kind after the other', goodLog(HOLDS_MIN, HOLDS_MIN), /only 1 handovers/],
  ];
  let failed = 0;
  for (const [name, lines, expected] of cases) {
    let said = null;
    try {
      check(`${lines.join('\n')}\n`);
    } catch (error) {
      said = error.message;
    }
    const good = expected === null ? said === null : expected.test(said ?? '');
    if (!good) console.error(`self-test: ${name}: the checker said ${said ?? 'nothing'}`);
    failed += !good;
  }
  for (const text of ['', '1000 enter c-1.1\n1010 leave c-1.1']) {
    try {
      check(text);
      console.error('self-test: an empty or cut off log was accepted');
      failed++;
    } catch { /* The checker must throw. */ }
  }
  if (failed > 0) throw new Error(`self-test: ${failed} faults were not caught`);
  return `self-test: ${cases.length + 1} planted faults caught`;
}

if (argv.length !== 3) {
  console.error('usage: check.mjs LOG | --self-test');
  exit(64);
}
try {
  console.log(argv[2] === '--self-test' ? selfTest() : check(readFileSync(argv[2], 'utf8')));
} catch (error) {
  console.error(`check: ${error.message}`);
  exit(1);
}
