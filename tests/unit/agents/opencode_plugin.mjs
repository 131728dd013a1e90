// Runs agentwatch's plugin in a pretended program, with pretended processes of agentwatch: rounds by the thousand, each
// with requests that come, go and are answered in any order. It prints what went wrong, and then how much was done.
import childProcess from "node:child_process"
import { EventEmitter } from "node:events"
import { syncBuiltinESMExports } from "node:module"
import { PassThrough } from "node:stream"

const [plugin, rounds, seed] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])]
let state = seed >>> 0
const random = () => ((state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32)
const any = (list) => list[Math.floor(random() * list.length)]
const wrong = []
const done = { rounds: 0, asked: 0, replied: 0, delivered: 0, elsewhere: 0, killed: 0 }
for (const event of ["uncaughtException", "unhandledRejection"]) process.on(event, (error) => wrong.push(`${event}: ${error?.stack}`))

// Time goes on when a round says so.
let now = 1_700_000_000_000
const timers = new Set()
Date.now = () => now
globalThis.setTimeout = (work, pause) => {
  const timer = { work, at: now + pause, unref: () => timer }
  timers.add(timer)
  return timer
}
globalThis.clearTimeout = (timer) => timers.delete(timer)
const wait = (milliseconds) => {
  now += milliseconds
  for (const timer of [...timers]) if (timer.at <= now && timers.delete(timer)) timer.work()
}

const processes = []
childProcess.spawn = (command, words) => {
  if (random() < 0.01) throw new Error("no process")
  const child = Object.assign(new EventEmitter(), { stdin: new PassThrough(), stdout: new PassThrough(), lines: [], command: [command, ...words] })
  child.kill = () => child.end()
  child.end = () => {
    if (child.isOver) return
    child.isOver = true
    child.stdin.destroy()
    child.emit("close", null)
  }
  let rest = ""
  child.stdin.on("data", (data) => {
    const lines = (rest + data).split("\n")
    rest = lines.pop()
    child.lines.push(...lines.map((line) => JSON.parse(line)))
  })
  child.stdin.on("error", () => {})
  child.stdin.on("end", () => setImmediate(child.end))
  processes.push(child)
  if (random() < 0.02) setImmediate(() => (child.emit("error", new Error("ENOENT")), child.end()))
  return child
}
syncBuiltinESMExports()
const writes = []
process.stdout.write = ((write) => (...words) => (writes.push(words[0]), write.apply(process.stdout, words)))(process.stdout.write)

const program = () => {
  const pending = new Map()
  const posts = []
  let hooks = {}
  let hasFailed = false
  const tell = (type, properties) => {
    if (hooks.event?.({ event: { type, properties } }) === undefined) wrong.push("the plugin has no event")
  }
  const take = (kind, id, body, reply) => {
    const one = pending.get(id)
    if (!one || one.kind !== kind) return { response: { status: 404 } }
    pending.delete(id)
    tell(`${kind}.${reply === "reject" && kind === "question" ? "rejected" : "replied"}`, { sessionID: one.asked.sessionID, requestID: id, reply })
    if (kind === "permission" && reply === "reject")
      for (const [other, { asked }] of [...pending]) if (asked.sessionID === one.asked.sessionID && pending.get(other).kind === kind) {
        pending.delete(other)
        tell("permission.replied", { sessionID: asked.sessionID, requestID: other, reply })
      }
    return { data: true, response: { status: 200 } }
  }
  const client = {
    get: async ({ url }) => {
      await new Promise(setImmediate)
      const chance = random()
      hasFailed ||= chance < 0.1
      if (chance < 0.02) throw new Error("no answer")
      if (chance < 0.1) return { error: { name: "BadRequest" }, response: { status: 400 } }
      if (url.startsWith("/session/")) {
        const [tool, status] = [any(["rig_ask", "execute"]), any(["running", "running", "pending"])]
        return { data: chance < 0.2 ? null : { parts: [{ callID: "call_1", tool, state: { status, input: { command: "x", of: tool } } }] } }
      }
      const kind = url.slice(1)
      return { data: [...pending.values()].filter((one) => one.kind === kind).map(({ asked, isReplaced }) => ({
        // Kilo adds a field.
        blocking: null,
        ...JSON.parse(JSON.stringify(asked)),
        ...(isReplaced ? { [asked.questions ? "questions" : "patterns"]: [{}] } : {}),
      })), response: { status: 200 } }
    },
    post: async ({ url, body }) => {
      const [, kind, id, what] = url.split("/")
      const isReplaced = pending.get(id)?.isReplaced
      if (random() < 0.02) throw new Error("no answer")
      const result = random() < 0.02 ? { response: { status: 400 } } : take(kind, id, body, what === "reject" ? "reject" : body.reply)
      posts.push({ kind, id, what, body, status: result.response.status })
      if (isReplaced && !hasFailed) wrong.push(`${id} was answered, and is another request`)
      await new Promise(setImmediate)
      return result
    },
  }
  return { pending, posts, client: { _client: client }, tell, take, hook: (made) => (hooks = made) }
}

process.on("exit", () => done.isTold || console.error(wrong.slice(0, 3).join("\n")))
const { default: load } = await import(plugin)
const settle = async () => {
  for (let turn = 0; turn < 6; turn++) await new Promise(setImmediate)
}
for (let round = 0; round < rounds; round++) {
  processes.length = 0
  const here = program()
  const hooks = await load({ client: here.client, directory: "/w" }, { command: ["agentwatch", "hook"] })
  here.hook(hooks)
  const said = [] // by id: the only replies that the operator gave
  const ids = []
  for (let step = 0; step < 14; step++) {
    const open = [...here.pending.keys()]
    const chance = random()
    if (chance < 0.3 || !open.length) {
      const kind = any(["permission", "permission", "question"])
      // After a restart of the program an id may come again, for something else.
      const id = random() < 0.1 && ids.length ? any(ids) : `${kind}_${round}_${step}`
      if (here.pending.has(id)) continue
      const asked = { id, sessionID: any(["ses_1", "ses_2"]), tool: random() < 0.9 ? { messageID: "msg_1", callID: "call_1" } : undefined }
      const isBare = random() < 0.2
      Object.assign(asked, kind === "permission" ? isBare ? { permission: "rig_ask", patterns: ["*"], metadata: {} } : { permission: "bash", patterns: [`touch ${step}`], metadata: { command: `touch ${step}`, none: undefined } } : { questions: [{ question: `Which ${step}?`, options: [] }] })
      here.pending.set(id, { kind, asked, isReplaced: random() < 0.05 })
      ids.push(id)
      done.asked++
      here.tell(`${kind}.asked`, asked)
    } else if (chance < 0.7) {
      const child = any(processes)
      const told = child?.lines[0]
      if (!told?.asked || child.isOver) continue
      const { id } = told.asked
      if (told.asked.permission === "rig_ask" && told.call && told.call.of !== "rig_ask") wrong.push(`${id} has another tool's arguments`)
      const others = child.lines.reduce((most, line) => line.others ?? most, 0)
      const right = told.kind === "question" ? any([{ answers: [["One"]] }, { reply: "reject", others }]) : any([{ reply: "once" }, { reply: "reject", others }, { reply: "reject", message: "no", others }])
      if (child.hasSpoken) continue
      child.hasSpoken = true
      const answer = any([
        () => (said.push([id, right]), JSON.stringify({ id, ...right })),
        () => (said.push([id, right]), JSON.stringify({ id, ...right })),
        () => JSON.stringify({ id: "per_other", ...right }),
        () => JSON.stringify({ id, reply: "always" }),
        () => JSON.stringify({ id, reply: { toString: () => "once" } }),
        () => JSON.stringify({ id, answers: [] }),
        () => JSON.stringify({ id, answers: [["One"], ["Two"]] }),
        () => JSON.stringify({ id, answers: [[7]] }),
        () => JSON.stringify([id, "once"]),
        () => "null",
        () => "{\"reply\":\"once\"",
        () => "\u0000\u001b[2J",
      ])()
      child.stdout.write(`${answer}\n`)
      if (random() < 0.2) child.stdout.write(`${JSON.stringify({ id, reply: "once" })}\n`)
    } else if (chance < 0.78) {
      const child = any(processes)
      if (child && !child.isOver) done.killed++
      child?.end()
    } else if (chance < 0.9) {
      const id = any(open)
      const { kind } = here.pending.get(id)
      here.take(kind, id, {}, any(["once", "always", "reject"]))
    } else if (chance < 0.95) {
      const sessionID = any(["ses_1", "ses_2"])
      for (const id of open) if (here.pending.get(id).asked.sessionID === sessionID) here.pending.delete(id)
      here.tell("session.idle", { sessionID })
    } else here.tell(any(["session.status", "nonsense", "permission", "permission.replied", "question.asked"]), any([undefined, null, {}, { requestID: 7 }]))
    if (random() < 0.7) await settle()
    // Later than its first look: what it sees there is what it offers.
    if (step === 0) wait(1000), await settle()
    if (random() < 0.3) wait(any([500, 3000, 100_000]))
  }
  await settle()
  for (const { kind, id, what, body, status } of here.posts) {
    done.replied++
    const meant = said.filter(([about]) => about === id).map(([, one]) => one)
    const fits = meant.some((one) =>
      kind === "permission" ? body.reply === one.reply && (body.message ?? "") === (one.message ?? "") : what === "reject" ? one.reply === "reject" : JSON.stringify(one.answers) === JSON.stringify(body.answers),
    )
    if (!fits) wrong.push(`round ${round}: ${kind} ${id} got ${JSON.stringify(body)}, and nobody had said so`)
    if (status === 200 && here.posts.filter((one) => one.id === id && one.status === 200).length > ids.filter((one) => one === id).length) wrong.push(`round ${round}: ${id} was answered twice`)
  }
  for (const child of processes) for (const { result } of child.lines) if (result) done[result] = (done[result] ?? 0) + 1
  const told = processes.filter((child) => !child.isOver && !child.lines.some((line) => "result" in line)).map((child) => child.lines[0]?.asked?.id)
  for (const id of told) if (id && !here.pending.has(id)) wrong.push(`round ${round}: ${id} is still offered`)
  await hooks.dispose()
  wait(100_000)
  await settle()
  timers.clear()
  if (processes.some((child) => !child.isOver && !child.stdin.writableEnded)) wrong.push(`round ${round}: a process was left`)
  done.rounds++
}
if (writes.length) wrong.push(`it wrote to the terminal: ${writes[0]}`)
done.isTold = true
process.stdout.write(JSON.stringify({ wrong: wrong.slice(0, 10), ...done }) + "\n", () => process.exit(0))
