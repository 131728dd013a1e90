// agentwatch's plugin for OpenCode and Kilo. For each request of the program (a permission or a question) it starts a
// process of agentwatch. The process offers the request to the operator. The plugin passes the operator's answer to the
// program, for this one request. It allows nothing by itself, and nothing twice. See `agentwatch help answers`.
import { spawn } from "node:child_process"
import { basename } from "node:path"

const MOST = 16 // processes at the same time; further requests wait until a process ends
const LONGEST = 1 << 20 // the most characters of an answer

export default async ({ client, directory }, options) => {
  const program = basename(process.execPath).startsWith("kilo") ? "kilo" : "opencode"
  const open = new Map() // the requests for which the program waits, by id, the oldest first
  let isOver = false

  const tell = (one, what) => {
    if (one.child?.stdin.writable) one.child.stdin.write(`${JSON.stringify(what)}\n`)
  }
  const beside = ({ kind, asked: { sessionID } }) =>
    [...open.values()].filter((one) => one.kind === kind && one.asked.sessionID === sessionID)
  const others = (one) => beside(one).length - 1
  const count = (one) => {
    if (one.kind === "permission") for (const each of beside(one)) if (each.isTold) tell(each, { others: others(each) })
  }

  const ask = (kind, told) => {
    const asked = JSON.parse(JSON.stringify(told))
    if (typeof asked.id !== "string" || open.has(asked.id)) return
    const one = { kind, asked, at: Date.now(), tries: 0, due: 0 }
    open.set(asked.id, one)
    fill()
    count(one)
  }
  const end = (id, result) => {
    const one = open.get(id)
    if (!one || !open.delete(id)) return
    tell(one, { result })
    one.child?.stdin.end()
    count(one)
    fill()
  }
  const fill = () => {
    let room = MOST - [...open.values()].filter((one) => one.child).length
    for (const one of open.values()) if (!one.child && Date.now() >= one.due && room-- > 0) start(one)
  }

  const start = (one) => {
    const again = () => {
      if (open.get(one.asked.id) !== one || one.child !== child) return
      // The process was killed, or the program refused its answer. The request is still open, so offer it again.
      const pause = 1000 * Math.min(60, 2 ** one.tries++)
      Object.assign(one, { child: undefined, isTold: false, due: Date.now() + pause })
      setTimeout(() => quietly(fill), pause + 10).unref?.()
    }
    let child, said = "", isWhole = false
    try {
      const [command, ...words] = options.command
      child = one.child = spawn(command, words, { stdio: ["pipe", "pipe", "ignore"] })
      child.on("error", again).on("close", again)
      child.stdin.on("error", () => {})
      child.stdout.setEncoding("utf8").on("data", (data) => {
        said += data
        if (said.length > LONGEST) child.kill()
        else if (!isWhole && (isWhole = said.includes("\n")))
          answer(one, said.split("\n", 1)[0]).catch(() => {
            if (one.child === child) tell(one, { result: one.isReplied ? "unknown" : "gone" })
            one.isReplied = false
            child.stdin.end()
          })
      })
    } catch {
      return again()
    }
    callOf(one.asked).catch(() => undefined).then((call) => {
      if (one.child !== child) return
      const { kind, asked, at, tries } = one
      const nonce = tries ? `${asked.id}/${tries}` : asked.id
      tell(one, { program, directory, kind, asked, call, at, nonce, others: others(one) })
      one.isTold = true
    })
  }
  // Returns the arguments of the call. A request does not always say what the call would do.
  const callOf = async ({ sessionID, tool, permission, patterns, metadata }) => {
    const isBare = permission && !Object.keys(metadata ?? {}).length && patterns?.every((one) => one === "*")
    for (let look = 0; look < 10; look++) {
      const { data } = await client._client.get({ url: `/session/${sessionID}/message/${tool.messageID}` })
      const { state, tool: name } = data.parts.find((part) => part.callID === tool.callID) ?? {}
      // If a tool calls other tools, this call does not have the arguments of the other tools.
      if (state?.status === "running") return isBare && name !== permission ? undefined : state.input
      // The program stores a running call a moment after it has sent the request.
      await new Promise((done) => setTimeout(done, 100))
    }
  }

  const answer = async (one, line) => {
    const { id } = one.asked
    const [url, body] = reply(one, JSON.parse(line))
    // If one request cannot be written as JSON, the program's whole list fails. Then use the request from the event.
    const { data } = await client._client.get({ url: `/${one.kind}` })
    const now = Array.isArray(data) ? data.find((each) => each.id === id) : one.asked
    if (open.get(id) !== one) return
    if (!now) return end(id, "elsewhere")
    // Compare only the fields of the event. The list may have more, such as Kilo's `blocking: null`.
    const isSame = ([key, value]) => JSON.stringify(now[key]) === JSON.stringify(value)
    if (!Object.entries(one.asked).every(isSame)) throw new Error("it is another one")
    one.isReplied = true // the event about our own reply comes before the response to the reply
    const headers = { "Content-Type": "application/json" }
    const post = client._client.post({ url: `/${one.kind}/${id}/${url}`, body, headers })
    const { response } = await post
    if (response) one.isReplied = false
    if (response?.status === 200) end(id, "delivered")
    else if (response?.status === 404) end(id, "elsewhere")
    else throw new Error("it was not taken")
  }
  const reply = (one, { id, reply, message, answers, ...told }) => {
    const { kind, asked } = one
    if (id !== asked.id) throw new Error("it is about another one")
    if (reply === "reject" && others(one) > told.others) throw new Error("it would end more than was said")
    if (kind === "permission" && reply === "once") return ["reply", { reply }]
    if (kind === "permission" && reply === "reject") return ["reply", { reply, ...(message ? { message: `${message}` } : {}) }]
    if (kind === "question" && reply === "reject") return ["reject", {}]
    const each = kind === "question" && Array.isArray(answers) && answers.length === asked.questions.length
    if (!each || !answers.every((one) => Array.isArray(one) && one.length && one.every((word) => typeof word === "string")))
      throw new Error("it is no answer")
    return ["reply", { answers }]
  }

  const heard = ({ type, properties: told }) => {
    const [kind, what] = type.split(".")
    if (what === "asked" && (kind === "permission" || kind === "question")) ask(kind, told)
    else if (what === "replied" || what === "rejected") {
      if (!open.get(told.requestID)?.isReplied) end(told.requestID, "elsewhere")
    } else if (type === "session.idle") {
      // The user stopped the session, so nobody has answered.
      for (const one of [...open.values()]) if (one.asked.sessionID === told.sessionID) end(one.asked.id, "gone")
    }
  }
  const quietly = (work) => {
    // An error here must not disturb the program. Its own prompt is there all the time.
    try {
      work()
    } catch {}
  }
  if (!client?._client || !Array.isArray(options?.command)) return {}
  const pending = async (kind) => {
    const { data } = await client._client.get({ url: `/${kind}` })
    if (!isOver && Array.isArray(data)) data.forEach((asked) => ask(kind, asked))
  }
  // Ask for the requests that are already open, after the program has loaded its plugins.
  for (const kind of ["permission", "question"]) setTimeout(() => pending(kind).catch(() => {}), 1000).unref?.()
  return {
    event: async ({ event }) => quietly(() => heard(event)),
    dispose: async () => {
      isOver = true
      for (const id of [...open.keys()]) quietly(() => end(id, "gone"))
    },
  }
}
