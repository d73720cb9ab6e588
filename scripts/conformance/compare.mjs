// Holds what the suite found through the daemon against what it found directly: check by check, and answer by answer,
// because a check may pass on an answer that says something else.
//
//   node compare.mjs REQUIREMENTS.yaml DIRECT THROUGH      two folders with results/ and record.jsonl
import { readFileSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';

const [requirements, direct, through] = process.argv.slice(2);
const revision = basename(requirements, '.yaml');

// The scenarios that count: the list under `server:`.
function scored() {
  const lines = readFileSync(requirements, 'utf8').split('\n');
  const from = lines.indexOf('server:') + 1;
  const rest = lines.slice(from).map((line) => line.match(/^ {2}- (\S+)$/)?.[1]);
  return rest.slice(0, rest.indexOf(undefined));
}

// Scenario, id and how often it came before, to status and reason.
function checks(folder) {
  const all = new Map();
  const results = join(folder, 'results');
  for (const scenario of scored()) {
    const runs = readdirSync(results).filter((name) => name.replace(/-\d{4}-\d\d-\d\dT.*$/, '') === `server-${scenario}`);
    if (runs.length !== 1) {
      all.set(`${scenario}: the scenario ran ${runs.length} times`, { status: 'FAILURE' });
      continue;
    }
    const seen = new Map();
    for (const check of JSON.parse(readFileSync(join(results, runs[0], 'checks.json'), 'utf8'))) {
      const count = (seen.get(check.id) ?? 0) + 1;
      seen.set(check.id, count);
      all.set(`${scenario}: ${check.id}${count > 1 ? ` (${count})` : ''}`, check);
    }
  }
  return all;
}

// What the messages of an answer say, without what is each server's own.
function said(line) {
  const { answered } = line;
  const texts = answered.startsWith('{') ? [answered] : answered.match(/(?<=^data: ?)\{.*$/gm) ?? [];
  return texts.map((text) => {
    const message = JSON.parse(text);
    // What a server makes of a lost session is its own affair.
    const code = message.error?.code;
    if (message.error) return { error: code > -32020 && code <= -32000 && code !== -32002 ? 'own' : code };
    const body = message.result ?? message.params ?? {};
    const { _meta, ttlMs, cacheScope, requestState, ...others } = body;
    if (requestState !== undefined) others.requestState = 'some';
    const rest = Object.fromEntries(Object.entries(others).sort(([a], [b]) => (a < b ? -1 : 1)));
    return message.result ? { result: rest } : { method: message.method, params: rest };
  });
}

// These are about the server itself, or end when the suite has heard enough.
const OWN = ['initialize', 'server/discover', 'subscriptions/listen'];

// What was asked, to all that was answered, in the order that it came.
function answers(folder) {
  const all = new Map();
  const lines = readFileSync(join(folder, 'record.jsonl'), 'utf8').trim().split('\n');
  for (const line of lines.map((text) => JSON.parse(text))) {
    if (line.method !== 'POST' || !line.asked) continue;
    const { id, method, params = {} } = JSON.parse(line.asked);
    if (id === undefined || method === undefined || OWN.includes(method)) continue;
    const { _meta, requestState, ...rest } = params;
    const key = `${method} ${JSON.stringify(rest)}`;
    const answer = JSON.stringify({ status: line.status, said: said(line) });
    all.set(key, [...(all.get(key) ?? []), answer]);
  }
  return all;
}

// Where two answers part.
function parted(one, other) {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  const from = Math.max(0, at - 100);
  const cut = (text) => `${from > 0 ? '…' : ''}${text.slice(from, at + 300)}`;
  return `\n  directly: ${cut(one)}\n  through:  ${cut(other)}`;
}

const faults = [];
const before = checks(direct);
const after = checks(through);
let passed = 0;
let failed = 0;
for (const [name, check] of before) {
  if (check.status !== 'SUCCESS') {
    if (check.status === 'FAILURE' || check.status === 'WARNING') {
      failed += 1;
      console.log(`not passed directly: ${name}: ${check.errorMessage ?? check.status}`);
    }
    continue;
  }
  passed += 1;
  const now = after.get(name);
  if (now?.status !== 'SUCCESS') faults.push(`${name}: ${now ? `${now.status}: ${now.errorMessage}` : 'it is missing'}`);
}
for (const [name, check] of after) {
  if (check.status === 'FAILURE' && before.get(name)?.status !== 'FAILURE' && !faults.some((fault) => fault.startsWith(`${name}: `))) {
    faults.push(`${name}: ${check.status}: ${check.errorMessage}`);
  }
}

let same = 0;
const heard = answers(through);
for (const [asked, all] of answers(direct)) {
  const now = heard.get(asked) ?? [];
  all.forEach((answer, index) => {
    if (now[index] === answer) same += 1;
    else faults.push(`${asked}${parted(answer, now[index] ?? 'nothing')}`);
  });
}

for (const fault of faults) console.log(`not through nexusd: ${fault}`);
if (faults.length > 0 || passed === 0 || same === 0) {
  console.log(`failed: ${revision}: ${passed} checks pass directly, ${faults.length} things differ through nexusd`);
  process.exit(1);
}
const rest = failed > 0 ? ` (${failed} do not pass directly)` : '';
console.log(`${revision}: ${passed} checks pass directly${rest}, all of them through nexusd; ${same} answers are the same`);
