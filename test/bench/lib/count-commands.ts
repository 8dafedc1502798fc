/** Loaded before a service: counts the commands that its driver sends to MongoDB, and writes the counts on SIGUSR2. */
import { MongoClient } from 'mongodb'

const counts: Record<string, number> = {}
const { connect } = MongoClient.prototype

MongoClient.prototype.connect = function (): Promise<MongoClient> {
  Object.assign(this.options, { monitorCommands: true })
  this.on('commandStarted', ({ commandName, command }) => {
    const name = `${commandName} ${String(command[commandName === 'getMore' ? 'collection' : commandName])}`
    counts[name] = (counts[name] ?? 0) + 1
  })
  return connect.call(this)
}

process.on('SIGUSR2', () => process.stderr.write(`commands ${JSON.stringify(counts)}\n`))
